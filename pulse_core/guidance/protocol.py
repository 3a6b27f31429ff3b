"""The protocol of guidance: which files, which of them invalidate a plan, and how a change is named and written."""

import hashlib
import json
import re
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import NamedTuple
from uuid import UUID

from pulse_core.model.moment import EPOCH, iso

FOLDER = ".pulse"
FILES = ("task.md", "guidance.md", "constraints.md", "plan.md")
"""In the order in which a look takes them."""
PLAN = "plan.md"
INVALIDATING = frozenset({"guidance.md", "constraints.md"})
"""Whoever works by a plan must replan once one of these has changed."""
STATE, EVENTS = "state.json", "events.jsonl"
"""Written for other tools, from the log."""
ENDPOINT = "/mcp"
CONTEXT_URI = "pulse://context/latest"

TEMPLATES = {
    "task.md": "# Task\n\nWhat is to be done, in your own words.\n",
    "guidance.md": "# Guidance\n\nWhat has changed since the work began; this may change its direction.\n",
    "constraints.md": "# Constraints\n\nWhat must not be done; this restricts the agent and never permits anything.\n",
    "plan.md": "# Plan\n\nHow the agent goes on, in its own words; it writes this itself.\n",
}

EVENT_ID = re.compile(r"evt_(\d{8}T\d{12})Z_[0-9a-f]{8}")
_TIME = "%Y%m%dT%H%M%S%f"


class ChangeKind(StrEnum):
    """What happened to a file."""

    CREATED = "created"
    MODIFIED = "modified"
    DELETED = "deleted"

    @classmethod
    def of(cls, before: str | None, after: str | None) -> "ChangeKind":
        """What it is called that a file's hash changes so; None: there is no file."""
        return cls.DELETED if after is None else cls.MODIFIED if before else cls.CREATED


class Change(NamedTuple):
    """One change of a file of a project. number: its place among all of the project; at: UTC microseconds; sha256 and size
    of the raw bytes, None when it was deleted."""

    number: int
    id: str
    at: int
    kind: str
    file: str
    sha256: str | None
    size: int | None

    @property
    def path(self) -> str:
        return f"{FOLDER}/{self.file}"

    def line(self) -> str:
        """It as a line of `events.jsonl`."""
        said = {"id": self.id, "timestamp": iso(self.at), "kind": self.kind, "path": self.path}
        said |= {"sha256": self.sha256, "size": self.size}  # type: ignore[dict-item]
        return json.dumps(said, separators=(",", ":")) + "\n"


def make_event_id(at: int, digits: str) -> str:
    """The id of a change at this time (UTC microseconds); digits: eight random ones, hexadecimal."""
    return f"evt_{datetime.fromtimestamp(at // 1_000_000, UTC):%Y%m%dT%H%M%S}{at % 1_000_000:06d}Z_{digits}"


def time_of(event_id: str) -> int | None:
    """The time in an id of an event (UTC microseconds); None if it is none."""
    if not (found := EVENT_ID.fullmatch(event_id)):
        return None
    try:
        since = datetime.strptime(found[1], _TIME).replace(tzinfo=UTC) - EPOCH
    except ValueError:
        return None
    return since // timedelta(microseconds=1)


def row_id(root: str, event_id: str) -> str:
    """The UUIDv7 of the log's row of this change, so that its index finds it."""
    ms = max(0, (time_of(event_id) or 0) // 1000) & ((1 << 48) - 1)
    rest = int.from_bytes(hashlib.sha256(f"{root}\0{event_id}".encode()).digest()[:10])
    high, low = (rest >> 62) & 0xFFF, rest & ((1 << 62) - 1)
    return str(UUID(int=(ms << 80) | (7 << 76) | (high << 64) | (2 << 62) | low))
