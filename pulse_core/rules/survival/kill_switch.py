"""`upulse pause`: everything but watching stops."""

from dataclasses import replace

from pulse_core.model.text import count
from pulse_core.model.verdict import Verdict
from pulse_core.projections.state import Snapshot
from pulse_core.rules.onion import Inner


async def kill_switch(prev: Snapshot, curr: Snapshot, inner: Inner) -> Verdict:
    """Drop every effect while Pulse is paused."""
    verdict = await inner(prev, curr)
    if curr.control.paused is None or not verdict.effects:
        return verdict
    held = replace(verdict, effects=())
    return held.noting(f"paused by {curr.control.by}: held back {count(len(verdict.effects), 'effect')}")
