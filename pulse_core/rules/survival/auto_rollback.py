"""Rolls back a promote whose rules raise errors, or whose watchers or executors fail, during probation."""

from pulse_core.model.moment import Moment
from pulse_core.model.verdict import Verdict
from pulse_core.projections import Snapshot
from pulse_core.rules.onion import Inner
from pulse_core.rules.survival.rollback import is_rollback_requested, rollback_effect, rollback_notices


async def auto_rollback(prev: Snapshot, curr: Snapshot, inner: Inner) -> Verdict:
    """Roll the engine back, and skip the inner rules in this tick, when its code fails too often."""
    why = rollback_reason(curr)
    if why and not is_rollback_requested(curr.engine):
        return Verdict((rollback_effect(why, curr),), notes=(why,))
    verdict = await inner(prev, curr)
    noted = verdict.noting(why or probation_summary(curr)) if why or probation_summary(curr) else verdict
    later = curr.settings.rollback.patience // 1000 if is_rollback_requested(curr.engine) else verdict.tick_ms
    return noted.plus(*rollback_notices(curr)).within(later)


def rollback_reason(curr: Snapshot) -> str:
    """Why the commit in force must be rolled back; empty if too little failed during its probation."""
    engine, bounds = curr.engine, curr.settings.rollback
    if engine.promoted is None or not engine.previous:
        return ""
    promoted, watch_us = engine.promoted, engine.watch_us
    if (errors := _within(watch_us, promoted, engine.errors)) >= bounds.errors:
        return f"its rules and projections raised {errors} errors while it was watched"
    if (breakdowns := _within(watch_us, promoted, engine.breakdowns)) >= bounds.breakdowns:
        return f"its watchers, executors or hosts broke down {breakdowns} times while it was watched"
    return ""


def probation_summary(curr: Snapshot) -> str:
    """A summary of the probation of the commit in force; empty without one."""
    engine, bounds = curr.engine, curr.settings.rollback
    if engine.promoted is None or curr.now.since(engine.promoted) > engine.watch_us:
        return ""
    note = f"{engine.commit[:12]} is watched: {len(engine.errors)} of {bounds.errors} errors"
    broken = len(engine.breakdowns)
    return f"{note}, {broken} of {bounds.breakdowns} breakdowns" if broken else note


def _within(us: int, then: Moment, moments: tuple[Moment, ...]) -> int:
    return sum(at.since(then) <= us for at in moments)
