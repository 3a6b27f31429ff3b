"""How much rules may have open at a time: every tick, snapshot and restart carries what is open."""

from collections.abc import Iterable

from pulse_core.model.errors import Refused
from pulse_core.projections.effects import OpenEffect, is_of_rules

MOST, BYTES = 200, 200_000
"""Open effects of all rules inside of survival together, and the characters of their data."""


class OpenBound:
    """What is open of rules; each effect that is added must find room."""

    def __init__(self, open_: Iterable[OpenEffect]) -> None:
        found = [len(one.event.data) for one in open_ if is_of_rules(one.event.data)]
        self._count, self._size = len(found), sum(found)

    def add(self, data: str) -> None:
        """Count one more with this data; raises Refused if there is no room for it."""
        if self._count >= MOST:
            raise Refused(
                f"{self._count} effects of rules are open already; wish less, or make them end sooner"
            )
        if self._size + len(data) > BYTES:
            words = f"the open effects of rules would have {self._size + len(data):,} characters, of at most {BYTES:,}"
            raise Refused(f"{words}; give a path or a name instead of the content")
        self._count += 1
        self._size += len(data)
