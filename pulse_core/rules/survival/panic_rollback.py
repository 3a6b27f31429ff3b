"""Survival's own actions keep failing since a promote: the engine goes back to what was good before."""

from pulse_core.model.verdict import Verdict
from pulse_core.projections import Snapshot
from pulse_core.rules.onion import Inner
from pulse_core.rules.survival.rollback import is_rollback_requested, rollback_effect


async def panic_rollback(prev: Snapshot, curr: Snapshot, inner: Inner) -> Verdict:
    """Roll the engine back, and let nothing inside speak in this tick, when survival fails again and again."""
    if (why := panic_reason(curr)) and not is_rollback_requested(curr.engine):
        return Verdict((rollback_effect(why, curr),), notes=(why,))
    verdict = await inner(prev, curr)
    return verdict.noting(why) if why else verdict


def panic_reason(curr: Snapshot) -> str:
    """Why it is time to panic, or nothing: enough failures in a row, all of them since the promote."""
    engine, bounds = curr.engine, curr.settings.rollback
    if engine.promoted is None or not engine.previous:
        return ""
    recent = [at for at in engine.failures if curr.now.since(at) <= bounds.within]
    if len(recent) < bounds.failures:
        return ""
    return f"{len(recent)} of survival's own actions failed in a row since {engine.commit[:12]} was promoted"
