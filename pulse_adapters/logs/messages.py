"""What the reader's process says, as values: one JSON object a line.

`{"source", "place", "hits": [[rule, [line…], count]…]}`, `{"error": [whose, message]}`, or progress:
`{"sources", "places", "behind", "polled", "dropped"}`.
"""

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from pulse_core.ports import LogBatch, MatchedLines, Place, ReadProgress
from pulse_core.settings import LogSettings


class Complaint(NamedTuple):
    """Something a person should know, and whose it is."""

    whose: str
    message: str


def message_of(line: bytes) -> LogBatch | ReadProgress | Complaint:
    """A message from its line; raises ValueError, KeyError or TypeError for what is none."""
    said: dict[str, Any] = json.loads(line)
    if "hits" in said:
        hits = tuple(MatchedLines(log, tuple(lines), count) for log, lines, count in said["hits"])
        return LogBatch(said["source"], said["place"], hits)
    if "error" in said:
        return Complaint(*said["error"])
    return ReadProgress(**{**said, "sources": tuple(said["sources"])})


def task(
    logs: Sequence[LogSettings],
    places: Mapping[str, Place],
    known: Collection[str],
    expanded: Sequence[str | None],
    journalctl: Sequence[str],
) -> bytes:
    """What the reader's process is to do. expanded: the path of each of the logs, without `~`."""
    spelled = [
        {
            "path": path,
            "unit": log.unit,
            "user": log.user,
            "keywords": log.keywords,
            "match": log.match,
            "ignore": log.ignore,
            "limit": log.lines_per_minute,
        }
        for log, path in zip(logs, expanded, strict=True)
    ]
    whole = {"logs": spelled, "places": places, "patterns": list(known), "journalctl": list(journalctl)}
    return json.dumps(whole).encode()
