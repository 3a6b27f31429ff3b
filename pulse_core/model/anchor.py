"""Anchors: a row of a home's log as it was written down outside of the home."""

import json
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from pulse_core.model.event import Head

_BEGIN = '{"home": '
_TOO_MANY = 2**63
"""Rows that no log has, and no database can look for."""


class Anchor(NamedTuple):
    """The head of a log as it was once: the home's id and path, and the time (UTC microseconds)."""

    home: str
    path: str
    head: Head
    at: int

    def line(self) -> str:
        """It in one line."""
        chain = self.head.chain.hex()
        return json.dumps(
            {"home": self.home, "path": self.path, "seq": self.head.seq, "chain": chain, "at": self.at}
        )


def read_anchors(lines: Iterable[str]) -> Iterator[Anchor]:
    """The anchors among these lines, in order; a line that is none, or was cut short, is passed over."""
    for line in lines:
        try:
            found = json.loads(line[max(line.rfind(_BEGIN), 0) :])  # behind one that was cut short
            head = Head(int(found["seq"]), bytes.fromhex(found["chain"]))
            anchor = Anchor(str(found["home"]), str(found["path"]), head, int(found["at"]))
        except (ValueError, LookupError, TypeError, RecursionError, OverflowError):
            continue
        if 0 <= head.seq < _TOO_MANY:
            yield anchor
