"""How much rules may have open at a time: every tick, snapshot and restart carries what is open."""

from collections import Counter
from collections.abc import Iterable

from pulse_core.model.errors import Refused
from pulse_core.projections.effects import OpenEffect, Source, source_of

MOST, BYTES = 200, 200_000
"""Open effects of all rules of plugins and the engine together, and the characters of their data; of capabilities' rules
as many."""


class OpenBound:
    """What is open of whom; each effect of a rule that is added must find room."""

    def __init__(self, open_: Iterable[OpenEffect]) -> None:
        self._count, self._size = Counter[Source](), Counter[Source]()
        for one in open_:
            self._take(source_of(one.event.data), len(one.event.data))

    def _take(self, source: Source, size: int) -> None:
        self._count[source] += 1
        self._size[source] += size

    def add(self, data: str) -> None:
        """Count one more with this data; raises Refused if there is no room for it."""
        source = source_of(data)
        if self._count[source] >= MOST:
            raise Refused(
                f"{self._count[source]} effects of {source} are open already; wish less, or make them end sooner"
            )
        if (size := self._size[source] + len(data)) > BYTES:
            words = f"the open effects of {source} would have {size:,} characters, of at most {BYTES:,}"
            raise Refused(f"{words}; give a path or a name instead of the content")
        self._take(source, len(data))
