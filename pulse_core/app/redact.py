"""Taking the data of events out of the log, by an event that says who did it and why; and where else it may be."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from pulse_core.app.append import append
from pulse_core.app.context import HomeContext
from pulse_core.model.event import Event
from pulse_core.model.json_types import Json
from pulse_core.model.kinds import NEVER_REDACTED, EventRedacted
from pulse_core.model.stored_data import REDACTED, read_data

SHORTEST = 6
"""Characters: a shorter text is found by chance."""
OWN_WORDS = frozenset({"action", "commit", "rule", "severity", "state"})
"""Fields with words of Pulse's own, as `failing`: they are found everywhere, and hold no secret."""


class Redacted(NamedTuple):
    """The event that was redacted, the event that says so, and whether a running daemon still has it in memory."""

    event: str
    by: str
    in_memory: bool


def redactable(home: HomeContext, names: Sequence[str]) -> Sequence[Event]:
    """The events of these ids, or beginnings of ids, that are not redacted yet; raises PulseError if one isn't there.

    So the same call finishes one that was killed. If all are, it is they: the writer refuses them, and opens the log for
    that, which takes away what a redaction that was killed has left in its -wal. Those that may not be redacted come first,
    so that they are refused before anything is recorded.
    """
    with home.events() as log:
        found = list({event.id: event for event in map(log.event, names)}.values())
    left = [event for event in found if event.data != REDACTED]
    return sorted(left or found, key=lambda event: event.kind not in NEVER_REDACTED)


def redact(home: HomeContext, events: Sequence[Event], why: str) -> Sequence[Redacted]:
    """Redact them one by one; on disk when this returns."""
    done = []
    for event in events:
        said = append(home, EventRedacted.kind, event.id, {"why": why})
        done.append(Redacted(event.id, str(said.event["id"]), said.by_daemon))
    return done


def texts_of(events: Sequence[Event]) -> frozenset[str]:
    """The texts in the data of these events that are long enough to be looked for elsewhere."""
    return frozenset(
        text for event in events for text in _said(read_data(event.data)) if len(text) >= SHORTEST
    )


def _said(data: Json) -> Iterator[str]:
    fields = data.items() if isinstance(data, dict) else ()
    return _texts([value for name, value in fields if name not in OWN_WORDS])


def _texts(value: Json) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for one in value.values() if isinstance(value, dict) else value:
            yield from _texts(one)
