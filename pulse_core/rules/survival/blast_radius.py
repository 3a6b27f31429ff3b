"""The global budget: however wrong the rules are, they act only so often."""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from pulse_core.actions import BUDGET, RULES_BUDGET
from pulse_core.model.actions import OUTWARD
from pulse_core.model.kinds import Effect
from pulse_core.model.moment import US_PER_SECOND, Moment
from pulse_core.model.verdict import Verdict
from pulse_core.projections import Snapshot
from pulse_core.rules.onion import Inner, Rule
from pulse_core.rules.survival.holds import Holds, longest_hold
from pulse_core.rules.survival.notices import is_told, notify_over, notify_unless_told

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
            verdict = with_budget_notice(one, verdict, curr, holds)
        return verdict

    return blast_radius


def action_budget(topic: str, verdict: Verdict, curr: Snapshot) -> ActionBudget:
    """The state of one of the budgets."""
    limit, survival = curr.settings.budget.actions_per_minute, topic == BUDGET
    acted = curr.effects.acted if survival else curr.effects.wished
    spent = [then for then in acted if curr.now.since(then) < MINUTE]
    new = (one for one in verdict.effects if one.survival == survival and is_new_action(one, curr))
    wanted = list(dict.fromkeys(one.key for one in new))
    return ActionBudget(topic, spent, frozenset(wanted[max(0, limit - len(spent)) :] if limit else ()))


def is_new_action(effect: Effect, curr: Snapshot) -> bool:
    """Whether it would act: not a notice of survival's, and not the repetition of an effect that is open."""
    is_free = effect.survival and effect.action in OUTWARD
    return not is_free and curr.effects.by_key(effect.key) is None


def with_budget_notice(one: ActionBudget, verdict: Verdict, curr: Snapshot, holds: Holds) -> Verdict:
    """Add the notice about a budget to the verdict."""
    if not one.held:
        return with_all_clear(verdict, one, curr, holds) if is_told(one.topic, curr) else verdict
    limit = curr.settings.budget.actions_per_minute
    frees = MINUTE - curr.now.since(one.spent[0]) if one.spent else MINUTE
    whose = "actions" if one.topic == BUDGET else "effects of your rules"
    note = f"{len(one.held)} {whose} held back: {limit} a minute over all targets are spent"
    notices = notify_unless_told(one.topic, TITLES[one.topic], note, curr)
    return verdict.plus(*without_held(notices, curr, holds)).noting(note).after_wait(frees)


def with_all_clear(verdict: Verdict, one: ActionBudget, curr: Snapshot, holds: Holds) -> Verdict:
    """Add the notice that nothing is held back any more, once that has lasted and the budget has room again."""
    told, limit = curr.notices[one.topic], curr.settings.budget.actions_per_minute
    left = QUIET_AFTER - curr.now.since(told.last) if told else 0
    if left > 0:
        return verdict.after_wait(left)
    if limit and len(one.spent) >= limit:
        return verdict.within(MINUTE // 1000)
    text = f"no action is held back; {len(one.spent)} were taken within the last minute"
    return verdict.plus(*without_held(notify_over(one.topic, TITLES[one.topic], text, curr), curr, holds))


def without_held(notices: Sequence[Effect], curr: Snapshot, holds: Holds) -> list[Effect]:
    """The notices that no hold matches; the rules that apply holds are inside of this one."""
    return [notice for notice in notices if longest_hold(notice.key, holds(curr)) is None]
