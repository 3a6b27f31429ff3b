"""How much rules may have open at a time: every tick, snapshot and restart carries what is open."""

from collections.abc import Collection

from pulse_core.model.errors import Refused
from pulse_core.projections.effects import OpenEffect, Source, source_of

MOST, BYTES = 200, 200_000
"""Open effects of all rules of plugins and the engine together, and the characters of their data; of capabilities' rules
as many."""


class OpenBound:
    """What is open of whom; each effect of a rule that is added must find room."""

    def __init__(self, open_: Collection[OpenEffect]) -> None:
        self._open = open_
        self._sizes: dict[Source, list[int]] = {}

    def add(self, data: str) -> None:
        """Count one more with this data; raises Refused if there is no room for it."""
        source = source_of(data)
        if source not in self._sizes:
            texts = [one.event.data for one in self._open]
            self._sizes[source] = [len(text) for text in texts if source_of(text) is source]
        sizes = self._sizes[source]
        if len(sizes) >= MOST:
            raise Refused(
                f"{len(sizes)} effects of {source} are open already; wish less, or make them end sooner"
            )
        if (size := sum(sizes) + len(data)) > BYTES:
            words = f"the open effects of {source} would have {size:,} characters, of at most {BYTES:,}"
            raise Refused(f"{words}; give a path or a name instead of the content")
        sizes.append(len(data))
