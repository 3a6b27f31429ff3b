"""Finding events in the log, above all effects, by what people call them."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from pulse_adapters.sqlite.event_reader import SqliteEventReader
from pulse_core.model.errors import Ambiguous, PulseError, UnknownName
from pulse_core.model.event import Event
from pulse_core.ports.readers import EventQuery

SHORTEST = 6
"""Characters at the end of an id that may stand for it: the beginning is shared by all of one minute."""

ABOUT_PROCESS = ("restart-process:{}", "stop-process:{}", "notify:flapping:{}")
"""The keys of effects that concern a process."""


def last_effects(log: SqliteEventReader, count: int) -> Sequence[Event]:
    """The newest effects, newest first."""
    return list(log.events(EventQuery(kinds=("effect",)), limit=count, newest_first=True))


def effect_called(log: SqliteEventReader, name: str) -> Event:
    """The effect of this id, or of the only one that begins or ends so. Raises UnknownName or Ambiguous."""
    try:
        row = log.event(name)
        if row.kind == "effect":
            return row
    except (UnknownName, Ambiguous):
        pass
    found = list(islice(_meant(log, name), 4)) if name else []
    if not found:
        raise PulseError(
            f"no effect {name!r}; give an id, its beginning, at least {SHORTEST} characters of its end, or a key: "
            "upulse effect list --all"
        )
    if len(found) > 1:
        raise PulseError(
            f"{name!r} may mean several effects ({', '.join(row.id for row in found)}); write more of it"
        )
    return found[0]


def _meant(log: SqliteEventReader, name: str) -> Iterator[Event]:
    for row in log.events(EventQuery(kinds=("effect",)), newest_first=True):
        if row.id.startswith(name) or (len(name) >= SHORTEST and row.id.endswith(name)):
            yield row


def newest_about(log: SqliteEventReader, keys: Iterable[str]) -> Event | None:
    """The newest effect with one of these keys, or None."""
    found = (
        next(log.events(EventQuery(subject=key, kinds=("effect",)), limit=1, newest_first=True), None)
        for key in keys
    )
    return max((row for row in found if row), key=lambda row: row.seq, default=None)


def effect_meant(log: SqliteEventReader, name: str) -> Event:
    """The newest effect with this key, or else the one of this id."""
    return newest_about(log, [name]) or effect_called(log, name)


def effect_explained(log: SqliteEventReader, name: str | None) -> Event:
    """The effect that is meant, or the last one of a process; without a name the last of all."""
    if name is not None:
        return newest_about(log, [key.format(name) for key in ABOUT_PROCESS]) or effect_meant(log, name)
    if last := last_effects(log, 1):
        return last[0]
    raise PulseError("there has been no effect yet; Pulse had nothing to do")
