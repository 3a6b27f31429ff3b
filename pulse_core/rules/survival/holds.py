"""Holds: effects that are held back at a person's request."""

from collections.abc import Callable, Iterable
from typing import NamedTuple

from pulse_core.model.glob import glob_matches
from pulse_core.model.kinds import Effect
from pulse_core.model.names import HELD_BACK, NOTIFY, RESTART_PROCESS, is_of_process, subjects_of
from pulse_core.projections.conditions import FOR
from pulse_core.projections.state import Snapshot


class Hold(NamedTuple):
    """A pattern of the keys of held-back effects, for how many microseconds more, and on whose behalf, in words."""

    match: str
    left_us: int
    whose: str


def was_due(effect: Effect, prev: Snapshot, curr: Snapshot) -> bool:
    """Whether what a new effect of survival answers stood at the last tick, too: what held it back then has ended.

    Not after the last tick of an earlier daemon: what held it back may have ended long before this one began.
    """
    if not effect.survival or curr.effects.by_key(effect.key) or curr.control.started != prev.control.started:
        return False
    history = prev.process(str(effect.params.get("process", "")))
    return answered_condition(effect, prev) != "" or (
        effect.action == RESTART_PROCESS and history.up is None and history.down is not None
    )


def answered_condition(effect: Effect, curr: Snapshot) -> str:
    """The name of the raised condition that an effect answers or tells of; empty if it does neither."""
    names: Iterable[str] = (str(effect.params.get(FOR, "")),)
    if effect.action == NOTIFY and not is_of_process(effect.key):
        names = subjects_of(effect.key)
    return next((name for name in names if name in curr.conditions.raised), "")


def told_as_held(effect: Effect, why: str) -> Effect:
    """The effect with what had held it back in its reason."""
    if HELD_BACK in effect.reason:
        return effect
    return effect.model_copy(update={"reason": f"{effect.reason}{HELD_BACK}{why}"})


Holds = Callable[[Snapshot], Iterable[Hold]]
"""Returns what is held back at this moment."""


def longest_hold(key: str, holds: Iterable[Hold]) -> Hold | None:
    """The hold on effects of this key that lasts longest, or None."""
    fitting = (one for one in holds if glob_matches(one.match, key))
    return max(fitting, key=lambda one: one.left_us, default=None)
