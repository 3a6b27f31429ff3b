"""What bounds the effects of authors' rules: how many are open, refused and tried again, and what is recorded of them."""

import json
from collections import deque
from collections.abc import Collection, Mapping

from pulse_core.model.errors import Refused
from pulse_core.model.json_types import Json
from pulse_core.model.moment import US_PER_SECOND, Moment
from pulse_core.projections.effects import OpenEffect, Source, source_of

MINUTE = 60 * US_PER_SECOND
MOST, BYTES = 200, 200_000
"""Open effects of all rules of plugins and the engine together, and the characters of their data; of capabilities' rules
as many."""
BURST, BYTES_A_SECOND = 256 * 1024 * 1024, 8 * 1024
"""What rules' effects and their results may take of the log at once, and in the long run: 700 MB a day."""
NO_ROOM = "what your rules' effects record takes more than 8 KiB a second for long; give a path instead of the content"
SMALL = 1024
"""Bytes of an effect or a result that are always recorded, as those of a notice: the budget of a minute bounds those."""


def small_part(result: Mapping[str, Json]) -> dict[str, Json]:
    """The smallest entries of a result, up to SMALL bytes: Pulse goes on from whom a notice has reached, and what a restart
    has begun."""
    kept, left, most = dict[str, Json](), 0, SMALL
    for size, name in sorted((len(json.dumps({name: value})), name) for name, value in result.items()):
        if (most := most - size) >= 0:
            kept[name] = result[name]
        else:
            left += size
    return {**kept, "left_out": f"{left:,} bytes, not kept: {NO_ROOM}"} if left else kept


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


class Refusals:
    """Refused effects of rules within a minute, by their keys: the same one over and over counts once."""

    def __init__(self) -> None:
        self._refused: dict[str, dict[str, Moment]] = {}

    def add(self, rule: str, key: str, now: Moment) -> None:
        """Count one."""
        self._refused.setdefault(rule, {})[key] = now

    def of(self, rule: str, now: Moment) -> int:
        """How many there are of this rule."""
        kept = {key: at for key, at in self._refused.pop(rule, {}).items() if now.since(at) < MINUTE}
        if kept:
            self._refused[rule] = kept
        return len(kept)


class RetryLimit:
    """When further attempts of actions whose policy is an author's choice began within a minute: each is recorded."""

    def __init__(self) -> None:
        self._begun: deque[Moment] = deque()

    def wait_us(self, most: int, now: Moment) -> int:
        """Microseconds until one more may begin; 0 if it may now. most: in a minute."""
        while self._begun and now.since(self._begun[0]) >= MINUTE:
            self._begun.popleft()
        return MINUTE - now.since(self._begun[-most]) if len(self._begun) >= most else 0

    def add(self, now: Moment) -> None:
        """Count one that begins."""
        self._begun.append(now)
