"""The global budget: however wrong the rules are, they act only so often."""

from dataclasses import replace

from pulse_core.model.kinds import Effect
from pulse_core.model.moment import US_PER_SECOND
from pulse_core.model.verdict import Verdict
from pulse_core.projections import Snapshot
from pulse_core.rules.onion import Inner

MINUTE = 60 * US_PER_SECOND
NOTICE_KEY = "notify:blast-radius"
NOTICE_EVERY = 10 * MINUTE


async def blast_radius(prev: Snapshot, curr: Snapshot, inner: Inner) -> Verdict:
    """Let through at most `budget.actions_per_minute` actions in a minute over all targets; notices are free."""
    verdict = await inner(prev, curr)
    limit = curr.settings.budget.actions_per_minute
    wanted = tuple(effect for effect in verdict.effects if is_new_action(effect, curr))
    if not limit or not wanted:
        return verdict
    spent = [then for then in curr.effects.acted if curr.now.since(then) < MINUTE]
    held = {id(effect) for effect in wanted[max(0, limit - len(spent)) :]}
    if not held:
        return verdict
    kept = replace(verdict, effects=tuple(effect for effect in verdict.effects if id(effect) not in held))
    frees = MINUTE - curr.now.since(spent[0]) if spent else MINUTE
    note = f"{len(held)} actions held back: {limit} a minute over all targets are spent"
    return kept.plus(*notice(curr, note)).noting(note).within(frees // 1000 + 1)


def is_new_action(effect: Effect, curr: Snapshot) -> bool:
    """Whether it would act: not a notice, and not the repetition of an effect that is open."""
    return effect.action != "notify" and curr.effects.by_key(effect.key) is None


def notice(curr: Snapshot, text: str) -> tuple[Effect, ...]:
    """One notice for a spell of held-back actions, not one for each tick of it."""
    told = curr.effects.settled_at.get(NOTICE_KEY)
    if told and curr.now.since(told) < NOTICE_EVERY:
        return ()
    params = {"title": "Pulse holds back actions", "text": text}
    return (Effect(action="notify", key=NOTICE_KEY, params=params, reason=text, survival=True),)
