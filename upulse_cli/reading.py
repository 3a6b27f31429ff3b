"""Reading the log for a command: projections as of now, and effects by what people call them."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from pulse_adapters.config.home import Home
from pulse_adapters.sqlite.checkpoints import read_checkpoints
from pulse_adapters.sqlite.reader import EventRow, LogReader, Wanted
from pulse_core.model.errors import Ambiguous, PulseError, UnknownName
from pulse_core.model.event import Event, Head
from pulse_core.projections import BUILT_IN, Projected, fold
from pulse_core.projections.projected import WANTED

BATCH = 2_000
SHORTEST = 6
"""Characters at the end of an id that may stand for it: the beginning is shared by all of one minute."""

ABOUT_PROCESS = ("restart-process:{}", "stop-process:{}", "notify:flapping:{}")
"""The keys of effects that concern a process."""


def facts_of(home: Home) -> Projected:
    """The projections at the head of the log, from the last checkpoint on if it is of this log."""
    with LogReader(home.path) as log:
        head = log.head()[0]
        state = _checkpointed(home, log)
        wanted = Wanted(since_seq=state.seq, kinds=tuple(WANTED))
        for batch in _batches(log.events(wanted)):
            state = fold(state, [Event(*row) for row in batch])
        return fold(state, (), upto=max(head, state.seq))


def _checkpointed(home: Home, log: LogReader) -> Projected:
    found = read_checkpoints(home.state)
    fits = all(
        name in found and found[name].version == projection.version for name, projection in BUILT_IN.items()
    )
    heads: set[Head] = {found[name].head for name in BUILT_IN} if fits else set()
    if len(heads) != 1 or log.chain_at(next(iter(heads)).seq) != next(iter(heads)).chain:
        return Projected()
    try:
        states: dict[str, Any] = {name: one.load(found[name].state) for name, one in BUILT_IN.items()}
    except ValueError:  # a cache that can't be read is no cache
        return Projected()
    return Projected(heads.pop().seq, **states)


def _batches(rows: Iterator[EventRow]) -> Iterator[Sequence[EventRow]]:
    while batch := list(islice(rows, BATCH)):
        yield batch


def spelled(row: EventRow) -> Mapping[str, Any]:
    """An event as JSON values."""
    return Event(*row).spelled()


def last_effects(log: LogReader, count: int) -> Sequence[EventRow]:
    """The newest effects, newest first."""
    return list(log.events(Wanted(kinds=("effect",)), limit=count, newest_first=True))


def effect_called(log: LogReader, name: str) -> EventRow:
    """The effect of this id, or of the only one that begins or ends so. Raises UnknownName or Ambiguous."""
    try:
        row = log.event(name)
        if row.kind == "effect":
            return row
    except (UnknownName, Ambiguous):
        pass
    found = list(islice(_meant(log, name), 4)) if name else []
    if not found:
        raise PulseError(f"no effect {name!r}; see: upulse effect list --all")
    if len(found) > 1:
        raise PulseError(
            f"{name!r} may mean several effects ({', '.join(row.id for row in found)}); write more of it"
        )
    return found[0]


def _meant(log: LogReader, name: str) -> Iterator[EventRow]:
    for row in log.events(Wanted(kinds=("effect",)), newest_first=True):
        if row.id.startswith(name) or (len(name) >= SHORTEST and row.id.endswith(name)):
            yield row


def newest_about(log: LogReader, keys: Iterable[str]) -> EventRow | None:
    """The newest effect with one of these keys, or None."""
    found = (
        next(log.events(Wanted(subject=key, kinds=("effect",)), limit=1, newest_first=True), None)
        for key in keys
    )
    return max((row for row in found if row), key=lambda row: row.seq, default=None)


def effect_meant(log: LogReader, name: str | None) -> EventRow:
    """The effect of this id, key or process (its last one); without a name the last of all."""
    if name is None:
        if last := last_effects(log, 1):
            return last[0]
        raise PulseError("there has been no effect yet; Pulse had nothing to do")
    keyed = newest_about(log, [name]) or newest_about(log, [key.format(name) for key in ABOUT_PROCESS])
    return keyed or effect_called(log, name)
