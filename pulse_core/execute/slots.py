"""The executor's slots: survival has its own, so that nothing that rules request can take them.

What starts a dead process has slots that nothing else of survival takes, and what waits for a living one to end takes none.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import NamedTuple

from pulse_core.composition import ACTIONS
from pulse_core.model.names import RESTART_PROCESS
from pulse_core.model.text import count
from pulse_core.model.text_cache import cached_by_text
from pulse_core.ports.executor import Slot
from pulse_core.projections.effects import Source, decode_plain_effect, source_of

Share = tuple[Source, bool]
"""Those who share a bound: who requested it, and whether the action is one of the engine's own."""


class Holder(NamedTuple):
    """Who holds a slot: survival, of which the action is a `Slot`, or else this action, requested by this source.

    is_own: whether the action is one of the engine's own; concurrency: how many of a declared one may execute at a time.
    """

    action: str = Slot.SHARED
    source: Source = Source.SURVIVAL
    is_own: bool = False
    concurrency: int | None = None

    @property
    def share(self) -> Share:
        """Whom it shares a bound with."""
        return self[1:3]


SURVIVAL = Holder()
TOGETHER, OWN = 1.5, 1.25
"""Slots of rules, and as many of people and of capabilities, for each that survival has; and of these, of all actions of
the engine's own together. One action has as many as survival at most. So who is slow leaves some to others: an action,
an engine, rules."""

TOLD = 10
"""Holders that are told of by name: an engine may have many."""


@cached_by_text
def holder(data: str) -> Holder:
    """Who would hold the slot of the effect with this data.

    A restart that a person wishes for is as one of survival's, of which at most one is open for each process: while it
    waited for others that people wished for, survival could not start that process.
    """
    action, source = str(decode_plain_effect(data).get("action", "")), source_of(data)
    is_persons_restart = source is Source.PEOPLE and action == RESTART_PROCESS
    return SURVIVAL if source is Source.SURVIVAL or is_persons_restart else holder_of(action, source)


@lru_cache(maxsize=256)
def holder_of(action: str, source: Source) -> Holder:
    """Who would hold the slot of an effect that is not survival's."""
    declared = ACTIONS.get(action)
    return Holder(action, source, declared is None, declared.concurrency if declared else None)


class Slots:
    """Who holds slots. most: how many survival has."""

    def __init__(self, most: Callable[[], int]) -> None:
        self._most = most
        self._held: dict[str, Holder] = {}
        self._count: Counter[Holder] = Counter()
        self._shared: Counter[Share] = Counter()

    def take(self, effect: str, who: Holder) -> None:
        """Hold a slot for the effect with this id until it is released."""
        if effect not in self._held:
            self._held[effect] = who
            self._add(who, 1)

    def release(self, effects: Iterable[str]) -> None:
        """Free the slots of these; one that holds none is left alone."""
        for effect in effects:
            if (who := self._held.pop(effect, None)) is not None:
                self._add(who, -1)

    def _add(self, who: Holder, number: int) -> None:
        self._count[who] += number
        if who.source is not Source.SURVIVAL:
            self._shared[who.share] += number

    def has_room(self, who: Holder) -> bool:
        """Whether one more may begin."""
        most = self._most()
        if who.source is Source.SURVIVAL:
            return who.action == Slot.NONE or self._count[who] < most
        own, builtin = self._shared[who.source, True], self._shared[who.source, False]
        return (
            self._count[who] < min(most, who.concurrency or most)
            and (not who.is_own or own < round(most * OWN))
            and own + builtin < round(most * TOGETHER)
        )

    def __str__(self) -> str:
        """Who holds the slots, most first: `note 24 of rules, run-command 8, 2 of survival`."""
        held = [(who, n) for who, n in self._count.most_common() if n and who.action != Slot.NONE]
        whose = {source: "" if source is Source.PEOPLE else f" of {source}" for source in Source}
        words = [f"{who.action} {n}{whose[who.source]}".lstrip() for who, n in held[:TOLD]]
        return ", ".join([*words, count(len(held) - TOLD, "other")] if len(held) > TOLD else words)
