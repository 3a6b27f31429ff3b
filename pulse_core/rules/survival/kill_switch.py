"""`upulse pause`: everything but watching stops."""

from dataclasses import replace

from pulse_core.model.text import count
from pulse_core.model.verdict import Verdict
from pulse_core.projections.state import Snapshot
from pulse_core.rules.onion import Inner
from pulse_core.rules.survival.holds import told_as_held, was_due


async def kill_switch(prev: Snapshot, curr: Snapshot, inner: Inner) -> Verdict:
    """Drop every effect while Pulse is paused."""
    verdict = await inner(prev, curr)
    if curr.control.paused is None:
        if prev.control.paused is None:
            return verdict
        why = f"Pulse was paused by {prev.control.by}"
        effects = (told_as_held(one, why) if was_due(one, prev, curr) else one for one in verdict.effects)
        return replace(verdict, effects=tuple(effects))
    if not verdict.effects:
        return verdict
    held = replace(verdict, effects=())
    return held.noting(f"paused by {curr.control.by}: held back {count(len(verdict.effects), 'effect')}")
