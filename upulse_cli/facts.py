"""The projections as of now, folded from the files: what a daemon would say if one ran."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

from pulse_adapters.config.home import Home
from pulse_adapters.sqlite.checkpoints import read_checkpoints
from pulse_adapters.sqlite.event_reader import SqliteEventReader
from pulse_core.model.event import Event, Head
from pulse_core.model.stored_data import REDACTED, damage_in, is_damaged
from pulse_core.ports.readers import EventQuery
from pulse_core.projections import BUILT_IN, Projected, fold
from pulse_core.projections.projected import WANTED
from upulse_cli.patience import aloud

BATCH = 2_000


def facts_of(home: Home) -> Projected:
    """The projections at the head of the log, from the last checkpoint on if it is of this log."""
    if not home.events.exists():  # a home whose log was never opened, or is gone
        return Projected()
    with SqliteEventReader(home.path) as log:
        head = log.head().seq
        state = checkpointed(home, log)
        wanted = EventQuery(since_seq=state.seq, kinds=tuple(WANTED))
        damage = ""
        for batch in aloud(in_batches(log.events(wanted)), head):
            damage = damage or damage_among(batch)
            state = fold(state, [foldable(row) for row in batch])
        return damaged(fold(state, (), upto=max(head, state.seq)), damage)


def damage_among(rows: Sequence[Event]) -> str:
    """What is wrong with the first of these rows whose payload is lost, or nothing."""
    return next(
        (f"row {row.seq} ({row.kind}): {damage_in(row.data)}" for row in rows if is_damaged(row.data)), ""
    )


def damaged(state: Projected, damage: str) -> Projected:
    """The projections, with the damage that they were folded past, if no check of the log has named one."""
    if not damage or state.control.damage:
        return state
    return replace(state, control=replace(state.control, damage=damage))


def foldable(row: Event) -> Event:
    """The event; one whose payload is lost is passed over by the folds, as a redacted one is."""
    return Event(*(row._replace(data=REDACTED) if is_damaged(row.data) else row))


def checkpointed(home: Home, log: SqliteEventReader) -> Projected:
    """The projections at the last checkpoint; the empty ones if there is none of this log and these folds."""
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


def in_batches(rows: Iterator[Event]) -> Iterator[Sequence[Event]]:
    """The rows, many at a time."""
    while batch := list(islice(rows, BATCH)):
        yield batch
