"""The global budget: however wrong the rules are, they act only so often."""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from pulse_core.actions import BUDGET, RULES_BUDGET
from pulse_core.model.kinds import Effect
from pulse_core.model.moment import US_PER_SECOND, Moment
from pulse_core.model.names import OUTWARD, ROLLBACK_ENGINE
from pulse_core.model.verdict import Verdict
from pulse_core.projections.state import Snapshot
from pulse_core.rules.onion import Inner, Rule
from pulse_core.rules.survival.holds import Holds, longest_hold
from pulse_core.rules.survival.notices import notify_over, notify_unless_told

MINUTE = 60 * US_PER_SECOND
TITLES = {BUDGET: "Pulse holds back actions", RULES_BUDGET: "Pulse holds back what your rules wish for"}
QUIET_AFTER = 10 * MINUTE
"""How long after the last notice, at least, the all-clear is sent: held-back actions may come in bursts."""


class ActionBudget(NamedTuple):
    """One of the two budgets: the moments of actions in the last minute, oldest first, and the keys of the effects over
    the limit."""

    topic: str
    spent: Sequence[Moment]
    held: frozenset[str]


def blast_radius_with(holds: Holds) -> Rule:
    """Make the rule that enforces both budgets; holds: returns what is held back now."""

    async def blast_radius(prev: Snapshot, curr: Snapshot, inner: Inner) -> Verdict:
        """Let through at most `budget.actions_per_minute` actions in a minute over all targets; notices are free.

        The engine's effects have a budget of their own of the same size, so that they cannot use up survival's.
        """
        verdict = await inner(prev, curr)
        both = [action_budget(topic, verdict, curr) for topic in (BUDGET, RULES_BUDGET)]
        if held := frozenset().union(*(one.held for one in both)):
            kept = tuple(effect for effect in verdict.effects if effect.key not in held)
            verdict = replace(verdict, effects=kept)
        for one in both:
            notice = budget_notice(one, curr)
            # The rules that apply holds are inside of this one.
            effects = [effect for effect in notice.effects if longest_hold(effect.key, holds(curr)) is None]
            verdict = verdict.plus(*effects).within(notice.tick_ms).noting(*notice.notes)
        return verdict

    return blast_radius


def action_budget(topic: str, verdict: Verdict, curr: Snapshot) -> ActionBudget:
    """The state of one of the budgets."""
    limit, survival = curr.settings.budget.actions_per_minute, topic == BUDGET
    acted = curr.effects.acted if survival else curr.effects.wished
    spent = [then for then in acted if curr.now.since(then) < MINUTE]
    new = (one for one in verdict.effects if one.survival == survival and is_new_action(one, curr))
    # A rollback, though it is begun last, has the first claim: it may be what ends the need for all the others.
    wanted = list(
        dict.fromkeys(one.key for one in sorted(new, key=lambda one: one.action != ROLLBACK_ENGINE))
    )
    return ActionBudget(topic, spent, frozenset(wanted[max(0, limit - len(spent)) :] if limit else ()))


def is_new_action(effect: Effect, curr: Snapshot) -> bool:
    """Whether it would act: not a notice of survival's, and not the repetition of an effect that is open."""
    is_free = effect.survival and effect.action in OUTWARD
    return not is_free and curr.effects.by_key(effect.key) is None


def budget_notice(one: ActionBudget, curr: Snapshot) -> Verdict:
    """The notice about a budget, or that nothing is held back any more, once that has lasted and there is room again."""
    told, limit = curr.notices[one.topic], curr.settings.budget.actions_per_minute
    if one.held:
        frees = MINUTE - curr.now.since(one.spent[0]) if one.spent else MINUTE
        whose = "actions" if one.topic == BUDGET else "effects of your rules"
        note = f"{len(one.held)} {whose} held back: {limit} a minute over all targets are spent"
        notices = notify_unless_told(one.topic, TITLES[one.topic], note, curr)
        return Verdict(notices, notes=(note,)).after_wait(frees)
    if told is None or told.over:
        return Verdict()
    if (left := QUIET_AFTER - curr.now.since(told.last)) > 0:
        return Verdict().after_wait(left)
    if limit and len(one.spent) >= limit:
        return Verdict(tick_ms=MINUTE // 1000)
    text = f"no action is held back; {len(one.spent)} were taken within the last minute"
    return Verdict(notify_over(one.topic, TITLES[one.topic], text, curr))
