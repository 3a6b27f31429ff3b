"""Rolls the engine back when its code fails during probation, or when survival's actions fail since a promote."""

from collections.abc import Sequence
from dataclasses import replace

from pulse_core.model.kinds import Effect
from pulse_core.model.moment import Moment
from pulse_core.model.names import ROLLBACK_ENGINE
from pulse_core.model.text import count
from pulse_core.model.verdict import Verdict
from pulse_core.projections.conditions import SET_ASIDE
from pulse_core.projections.state import Snapshot
from pulse_core.rules.onion import Inner
from pulse_core.rules.survival.notices import notify_once, notify_over, notify_unless_told, survival_effect

TOPIC, DONE, ASIDE = "engine:rollback", "engine:rolled-back", "engine:set-aside"
QUARANTINE = "engine:quarantine"


async def panic_rollback(prev: Snapshot, curr: Snapshot, inner: Inner) -> Verdict:
    """Roll the engine back, and let survival alone speak in this tick, when survival's actions fail repeatedly."""
    why, verdict = panic_reason(curr), await inner(prev, curr)
    if why and curr.engine.asked is None:
        return rollback(why, verdict, curr, while_failing=True)
    return verdict.noting(why) if why else verdict


def panic_reason(curr: Snapshot) -> str:
    """Why to roll back: enough failures in a row, of what did not fail before the promote; otherwise empty."""
    engine, bounds = curr.engine, curr.settings.rollback
    if engine.promoted is None or not engine.previous:
        return ""
    recent = [at for at in engine.failures if curr.now.since(at) <= bounds.within]
    if (failures := _count_within(engine.watch_us, engine.promoted, recent)) < bounds.failures:
        return ""
    return f"{failures} of survival's own actions failed in a row since {engine.commit[:12]} was promoted"


async def auto_rollback(prev: Snapshot, curr: Snapshot, inner: Inner) -> Verdict:
    """Roll the engine back, and let survival alone speak in this tick, when its code fails too often."""
    why, asked, verdict = rollback_reason(curr), curr.engine.asked, await inner(prev, curr)
    if why and asked is None:
        return rollback(why, verdict, curr)
    verdict = verdict.plus(*rollback_notices(curr), *set_aside_notices(curr), *quarantine_notices(curr))
    if note := why or probation_summary(curr):
        verdict = verdict.noting(note)
    return verdict if asked is None else verdict.within(curr.settings.rollback.patience // 1000)


def rollback_reason(curr: Snapshot) -> str:
    """Why the commit in force must be rolled back; empty if too little failed during its probation."""
    engine, bounds = curr.engine, curr.settings.rollback
    if engine.promoted is None or not engine.previous:
        return ""
    promoted, watch_us = engine.promoted, engine.watch_us
    if (errors := _count_within(watch_us, promoted, engine.errors)) >= bounds.errors:
        return f"its rules and projections raised at least {count(errors, 'error')} while it was watched"
    if (breakdowns := _count_within(watch_us, promoted, engine.breakdowns)) >= bounds.breakdowns:
        return f"its watchers, executors or hosts broke down at least {count(breakdowns, 'time')} while it was watched"
    return ""


def _count_within(us: int, then: Moment, moments: Sequence[Moment]) -> int:
    return sum(at.since(then) <= us for at in moments)


def probation_summary(curr: Snapshot) -> str:
    """A summary of the probation of the commit in force; empty without one."""
    engine, bounds = curr.engine, curr.settings.rollback
    if engine.promoted is None or curr.now.since(engine.promoted) > engine.watch_us:
        return ""
    note = f"{engine.commit[:12]} is watched: {len(engine.errors)} of {count(bounds.errors, 'error')}"
    broken = len(engine.breakdowns)
    return f"{note}, {broken} of {count(bounds.breakdowns, 'breakdown')}" if broken else note


def rollback(why: str, verdict: Verdict, curr: Snapshot, while_failing: bool = False) -> Verdict:
    """What survival wishes besides, first, and the request to go back to the commit before the one in force.

    A rollback may take long: what has died meanwhile is not kept waiting for it.
    """
    engine = curr.engine
    params = {"to": engine.previous, "reject": engine.commit, "why": why, "while_failing": while_failing}
    reason = f"{engine.commit[:12]} is taken back: {why}"
    effects = [one for one in verdict.effects if one.survival and one.key != ROLLBACK_ENGINE]
    wish = survival_effect(ROLLBACK_ENGINE, ROLLBACK_ENGINE, params, reason)
    return replace(verdict, effects=(*effects, wish)).noting(why)


def rollback_notices(curr: Snapshot) -> tuple[Effect, ...]:
    """Notify a person of a rollback that was requested and is not done; after that notice, that it is done.

    Likewise of one that Pulse has done by itself.
    """
    engine = curr.engine
    if engine.asked is None:
        over = notify_over(TOPIC, "the engine's rollback", f"{engine.commit[:12]} is in force", curr)
        if engine.rolled_back is None or not engine.rolled_back_why:
            return over
        text = (
            f"{engine.replaced[:12]} was rolled back: {engine.rolled_back_why}. {engine.commit[:12]} is in force;"
            " see: upulse engine log"
        )
        return *over, *notify_once(
            DONE, "the engine was rolled back", text, curr, engine.rolled_back, "error"
        )
    if curr.now.since(engine.asked) < curr.settings.rollback.patience:
        return ()
    text = (
        f"{engine.commit[:12]} does harm and was to be replaced by {engine.previous[:12]}, but still is in force;"
        " look at it with: upulse effect list, and stop the engine's rules with: upulse pause"
    )
    return notify_unless_told(TOPIC, "the engine could not be rolled back", text, curr)


def quarantine_notices(curr: Snapshot) -> tuple[Effect, ...]:
    """Notify a person that rules are passed over; after that notice, that none is."""
    rules = curr.engine.quarantined
    if not rules:
        return notify_over(
            QUARANTINE, "rules are passed over", f"{curr.engine.commit[:12]} is in force", curr
        )
    title = f"{count(len(rules), 'rule')} of the engine {'is' if len(rules) == 1 else 'are'} passed over"
    text = "\n".join([*(f"{rule}: {why}" for rule, why in rules.items()), "Mend it, and promote."])
    return notify_unless_told(QUARANTINE, title, text, curr, severity="warning")


def set_aside_notices(curr: Snapshot) -> tuple[Effect, ...]:
    """Notify a person that the engine was set aside; after that notice, that it runs again."""
    condition = curr.conditions[SET_ASIDE]
    if condition is None:
        return notify_over(ASIDE, "the engine was set aside", f"{curr.engine.commit[:12]} runs again", curr)
    text = (
        f"{condition.evidence}. Pulse goes on without it; {curr.engine.remedy or 'mend it'},"
        " or let it run again with: upulse daemon reload"
    )
    return notify_unless_told(ASIDE, "the engine was set aside", text, curr)
