"""The messages of the reader's process as values: one JSON object each.

`{"source", "place", "hits": [[rule, [line…], count]…]}`, `{"error": [whose, message]}`, or progress:
`{"sources", "places", "behind", "polled", "dropped"}`.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from pulse_adapters.workers.framing import Message
from pulse_adapters.workers.messages import decode
from pulse_core.ports import LogBatch, Place, ReadProgress
from pulse_core.settings import LogSettings


class LogReaderProblem(NamedTuple):
    """A problem that the user should see, and its source."""

    whose: str
    message: str


class _Error(NamedTuple):
    error: LogReaderProblem


def parse_message(said: Message) -> LogBatch | ReadProgress | LogReaderProblem:
    """Parse a message. Raises WorkerFault."""
    if "hits" in said:
        return decode(LogBatch, said)
    if "error" in said:
        return decode(_Error, said).error
    return decode(ReadProgress, said)


def reader_task(
    logs: Sequence[LogSettings],
    places: Mapping[str, Place],
    known: Collection[str],
    expanded: Sequence[str | None],
    journalctl: Sequence[str],
) -> Message:
    """The request to the reader's process. expanded: the path of each of the logs, without `~`."""
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
    return {"logs": spelled, "places": places, "patterns": list(known), "journalctl": list(journalctl)}
