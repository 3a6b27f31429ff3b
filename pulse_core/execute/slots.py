"""The executor's slots: survival has its own, so that nothing that rules request can take them."""

from collections import Counter
from collections.abc import Callable, Iterable
from functools import lru_cache

from pulse_core.projections.effects import decode_plain_effect

SURVIVAL = ""
"""Who holds a slot: survival, or else the action that a rule or a person requested."""
OTHERS = 1.5
"""Slots of all others, for each that survival has. One action has as many as survival, so that a slow one leaves some."""


@lru_cache(maxsize=4_096)
def holder(data: str) -> str:
    """Who would hold the slot of the effect with this data."""
    wish = decode_plain_effect(data)
    return SURVIVAL if wish.get("survival") else str(wish.get("action", ""))


class Slots:
    """Who holds slots. most: how many survival has, and as many each other action, up to `OTHERS` of it together."""

    def __init__(self, most: Callable[[], int]) -> None:
        self._most = most
        self._held: dict[str, str] = {}
        self._count: Counter[str] = Counter()

    def take(self, effect: str, who: str) -> None:
        """Hold a slot for the effect with this id until it is released."""
        if effect not in self._held:
            self._held[effect] = who
            self._count[who] += 1

    def release(self, effects: Iterable[str]) -> None:
        """Free the slots of these; one that holds none is left alone."""
        for effect in effects:
            if (who := self._held.pop(effect, None)) is not None:
                self._count[who] -= 1

    def has_room(self, who: str) -> bool:
        """Whether one more may begin."""
        most = self._most()
        return self._count[who] < most and (who == SURVIVAL or self._others < round(most * OTHERS))

    def __str__(self) -> str:
        """Who holds the slots that survival does not have, most first: `collect 24, run-command 8`."""
        return ", ".join(f"{who} {count}" for who, count in self._count.most_common() if who and count)

    @property
    def _others(self) -> int:
        return len(self._held) - self._count[SURVIVAL]
