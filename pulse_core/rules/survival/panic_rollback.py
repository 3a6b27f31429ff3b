"""Rolls the engine back when survival's own actions keep failing since a promote."""

from pulse_core.model.verdict import Verdict
from pulse_core.projections import Snapshot
from pulse_core.rules.onion import Inner
from pulse_core.rules.survival.rollback import is_rollback_requested, rollback_effect


async def panic_rollback(prev: Snapshot, curr: Snapshot, inner: Inner) -> Verdict:
    """Roll the engine back, and skip the inner rules in this tick, when survival's actions fail repeatedly."""
    if (why := panic_reason(curr)) and not is_rollback_requested(curr.engine):
        return Verdict((rollback_effect(why, curr),), notes=(why,))
    verdict = await inner(prev, curr)
    return verdict.noting(why) if why else verdict


def panic_reason(curr: Snapshot) -> str:
    """Why to roll back: enough failures in a row, all since the promote; otherwise empty."""
    engine, bounds = curr.engine, curr.settings.rollback
    if engine.promoted is None or not engine.previous:
        return ""
    recent = [at for at in engine.failures if curr.now.since(at) <= bounds.within]
    if len(recent) < bounds.failures:
        return ""
    return f"{len(recent)} of survival's own actions failed in a row since {engine.commit[:12]} was promoted"
