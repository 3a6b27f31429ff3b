"""The projections as of now, folded from the files: what a daemon would say if one ran."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice, takewhile

from pulse_adapters.config.home import Home
from pulse_adapters.sqlite.checkpoints import read_checkpoints
from pulse_adapters.sqlite.event_reader import SqliteEventReader
from pulse_core.composition import FOLD
from pulse_core.model.checkpoint import Checkpoint
from pulse_core.model.event import Event
from pulse_core.model.stored_data import REDACTED, damage_in, is_damaged
from pulse_core.ports.readers import EventQuery
from pulse_core.projections import State
from upulse_cli.patience import aloud

BATCH = 2_000


def facts_of(home: Home) -> State:
    """The projections at the head of the log, from the last checkpoint on if it is of this log."""
    if not home.events.exists():  # a home whose log was never opened, or is gone
        return FOLD.start
    with SqliteEventReader(home.path) as log:
        head = log.head().seq
        state = resumed(log, kept_of(home, log))
        wanted = EventQuery(since_seq=state.seq, kinds=tuple(FOLD.kinds))
        damage = ""
        for batch in aloud(in_batches(log.events(wanted)), head):
            damage = damage or damage_among(batch)
            state = FOLD(state, [foldable(row) for row in batch])
        return damaged(FOLD(state, (), upto=max(head, state.seq)), damage)


def damage_among(rows: Sequence[Event]) -> str:
    """What is wrong with the first of these rows whose payload is lost, or nothing."""
    return next(
        (f"row {row.seq} ({row.kind}): {damage_in(row.data)}" for row in rows if is_damaged(row.data)), ""
    )


def damaged(state: State, damage: str) -> State:
    """The projections, with the damage that they were folded past, if no check of the log has named one."""
    if not damage or state.control.damage:
        return state
    return replace(state, control=replace(state.control, damage=damage))


def foldable(row: Event) -> Event:
    """The event; one whose payload is lost is passed over by the folds, as a redacted one is."""
    return Event(*(row._replace(data=REDACTED) if is_damaged(row.data) else row))


def kept_of(home: Home, log: SqliteEventReader) -> Mapping[str, Checkpoint]:
    """The checkpoints of this log by the name of their projection."""
    found = read_checkpoints(home.state)
    ours = {head for head in {one.head for one in found.values()} if log.chain_at(head.seq) == head.chain}
    return {name: one for name, one in found.items() if one.head in ours}


def resumed(log: SqliteEventReader, *kept: Mapping[str, Checkpoint], upto: int | None = None) -> State:
    """The state at the furthest of these checkpoints that lies no further than a row."""
    catch_up = FOLD.resume(*kept, upto=upto)
    for gap in catch_up.gaps():
        rows = log.events(EventQuery(since_seq=gap.since, kinds=tuple(gap.kinds)))
        for batch in in_batches(takewhile(lambda row: row.seq <= gap.upto, rows)):  # noqa: B023 - read at once
            catch_up.take([foldable(row) for row in batch])
    return catch_up.state


def in_batches(rows: Iterator[Event]) -> Iterator[Sequence[Event]]:
    """The rows, many at a time."""
    while batch := list(islice(rows, BATCH)):
        yield batch
