"""The global budget: however wrong the rules are, they act only so often."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from pulse_core.actions import BUDGET, CAPABILITIES_BUDGET, RULES_BUDGET, STARTS_BUDGET
from pulse_core.model.kinds import Effect
from pulse_core.model.moment import US_PER_SECOND, Moment
from pulse_core.model.names import OUTWARD, ROLLBACK_ENGINE
from pulse_core.model.text import count, listed
from pulse_core.model.verdict import Verdict
from pulse_core.projections.state import Snapshot
from pulse_core.rules.onion import Inner, Rule
from pulse_core.rules.survival.holds import Holds, longest_hold, told_as_held, was_due
from pulse_core.rules.survival.notices import notify_over, notify_unless_told
from pulse_core.rules.survival.process_watchdog import restart_key

MINUTE = 60 * US_PER_SECOND
TITLES = {
    BUDGET: "Pulse holds back actions",
    STARTS_BUDGET: "Pulse holds back starts of dead processes",
    CAPABILITIES_BUDGET: "Pulse holds back what its capabilities wish for",
    RULES_BUDGET: "Pulse holds back what your rules wish for",
}
WHOSE = {
    BUDGET: ("action", ""),
    STARTS_BUDGET: ("start", " of dead processes"),
    CAPABILITIES_BUDGET: ("effect", " of capabilities"),
    RULES_BUDGET: ("effect", " of your rules"),
}
NAMED = 3
"""How many rules are named whose effects are held back, and how many keys of each."""
QUIET_AFTER = 10 * MINUTE
"""How long after the last notice, at least, the all-clear is sent: held-back actions may come in bursts."""


class ActionBudget(NamedTuple):
    """One of the budgets: the moments of actions in the last minute, oldest first, and the effects over the limit: the
    rule of each by its key."""

    topic: str
    limit: int
    spent: Sequence[Moment]
    held: Mapping[str, str]

    def frees_us(self, now: Moment, place: int = 0) -> int:
        """Microseconds until the held-back effect at this place has its turn, after those before it."""
        minutes, place = divmod(place, self.limit)
        ages = [now.since(then) for then in self.spent] + [0] * (self.limit - len(self.spent))
        return (minutes + 1) * MINUTE - ages[len(ages) - self.limit + place]


def blast_radius_with(holds: Holds) -> Rule:
    """Make the rule that enforces the budgets; holds: returns what is held back now."""

    async def blast_radius(prev: Snapshot, curr: Snapshot, inner: Inner) -> Verdict:
        """Let through at most `budget.actions_per_minute` actions in a minute over all targets; notices are free.

        Starts of dead processes have a budget of their own of the same size, so that nothing else that survival does delays
        them; the first of each process in a minute is not held back by any, and costs none, nor is one held back of which
        there were fewer than its share. The engine's effects have another one, so that they cannot use up survival's, and
        are bounded though survival may not be; capabilities have theirs.
        """
        verdict = await inner(prev, curr)
        budgets = [action_budget(topic, verdict, curr) for topic in TITLES]
        if held := {key for one in budgets for key in one.held}:
            kept = tuple(effect for effect in verdict.effects if effect.key not in held)
            verdict = replace(verdict, effects=kept)
        verdict = _with_what_held_back(verdict, prev, curr)
        for one in budgets:
            notice = budget_notice(one, curr)
            # The rules that apply holds are inside of this one.
            effects = [effect for effect in notice.effects if longest_hold(effect.key, holds(curr)) is None]
            verdict = verdict.plus(*effects).within(notice.tick_ms).noting(*notice.notes)
        return verdict

    return blast_radius


def _with_what_held_back(verdict: Verdict, prev: Snapshot, curr: Snapshot) -> Verdict:
    """The verdict in which new effects say which budget had held them back."""
    due = tuple(one for one in verdict.effects if was_due(one, prev, curr))
    if not due:
        return verdict
    why = {
        key: f"{one.limit} {WHOSE[one.topic][0]}s a minute{WHOSE[one.topic][1]} were spent"
        for one in (action_budget(topic, replace(verdict, effects=due), prev) for topic in TITLES)
        for key in one.held
    }
    effects = (told_as_held(one, why[one.key]) if one.key in why else one for one in verdict.effects)
    return replace(verdict, effects=tuple(effects))


def action_budget(topic: str, verdict: Verdict, curr: Snapshot) -> ActionBudget:
    """The state of one of the budgets."""
    effects, settings = curr.effects, curr.settings.budget
    acted, limit = {
        BUDGET: (effects.acted, settings.actions_per_minute),
        STARTS_BUDGET: (effects.started, settings.actions_per_minute),
        CAPABILITIES_BUDGET: (effects.delegated, settings.capability_actions_per_minute),
        RULES_BUDGET: (effects.wished, settings.of_rules),
    }[topic]
    spent = [then for then in acted if curr.now.since(then) < MINUTE]
    new = (one for one in verdict.effects if budget_of(one) == topic and is_new_action(one, curr))
    # A rollback, though it is begun last, has the first claim: it may be what ends the need for all the others.
    wanted = {one.key: one.rule for one in sorted(new, key=lambda one: one.action != ROLLBACK_ENGINE)}
    over = list(wanted)[max(0, limit - len(spent)) :] if limit else []
    if topic == STARTS_BUDGET and over:
        over = _over_their_share(over, wanted, limit, curr)
    return ActionBudget(topic, limit, spent, {key: wanted[key] for key in over})


def _over_their_share(over: Sequence[str], wanted: Collection[str], limit: int, curr: Snapshot) -> list[str]:
    """Those of these starts whose process has had its share of the budget within the minute: what can never be started would
    else spend what is left for all others. wanted: all that are to be started."""
    recent = {restart_key(name): one.recent for name, one in curr.state.processes.of.items()}
    had = {key: sum(curr.now.since(one.moment) < MINUTE for one in its) for key, its in recent.items()}
    share = limit // len({*wanted, *(key for key, times in had.items() if times)})
    return [key for key in over if had.get(key, limit) >= share]


def budget_of(effect: Effect) -> str:
    """The topic of the budget that it costs."""
    if effect.survival:
        return STARTS_BUDGET if effect.params.get("only_start") else BUDGET
    return CAPABILITIES_BUDGET if effect.capability else RULES_BUDGET


def is_new_action(effect: Effect, curr: Snapshot) -> bool:
    """Whether it would act, and may be held back: not the repetition of an effect that is open, not a notice of
    survival's, and not the start of a dead process that was not started within the last minute."""
    is_first = effect.params.get("only_start") and not curr.effects.pause_left(effect.key, MINUTE, curr.now)
    is_free = effect.survival and (effect.action in OUTWARD or is_first)
    return not is_free and curr.effects.by_key(effect.key) is None


def _named(held: Mapping[str, str]) -> str:
    """The first rules and keys of what is held back."""
    keys: dict[str, list[str]] = {}
    for key, rule in held.items():
        keys.setdefault(rule, []).append(key)
    told = [f"{rule}: {listed(some, NAMED)}" for rule, some in keys.items()]
    return "; ".join(told[:NAMED]) + (f"; {count(len(told) - NAMED, 'more rule')}" if told[NAMED:] else "")


def budget_notice(one: ActionBudget, curr: Snapshot) -> Verdict:
    """The notice about a budget, or that nothing is held back any more, once that has lasted and there is room again."""
    told, limit = curr.notices[one.topic], one.limit
    if one.held:
        noun, whose = WHOSE[one.topic]
        spent = f"{count(len(one.held), noun)}{whose} held back: {limit} a minute over all targets are spent"
        note = f"{spent}; {_named(one.held)}"
        dead = [key.removeprefix(restart_key("")) for key in one.held] if one.topic == STARTS_BUDGET else []
        text = f"{spent}: {listed(dead, NAMED)}" if dead else note
        notices = notify_unless_told(one.topic, TITLES[one.topic], text, curr)
        return Verdict(notices, notes=(note,)).after_wait(one.frees_us(curr.now))
    if told is None or told.over:
        return Verdict()
    if (left := QUIET_AFTER - curr.now.since(told.last)) > 0:
        return Verdict().after_wait(left)
    if limit and len(one.spent) >= limit:
        return Verdict(tick_ms=MINUTE // 1000)
    text = f"no action is held back; {len(one.spent)} were taken within the last minute"
    return Verdict(notify_over(one.topic, TITLES[one.topic], text, curr))
