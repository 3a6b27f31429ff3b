"""The projections as of now: what the log has said so far, folded when somebody asks."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from pulse_core.model.event import Event, Head
from pulse_core.ports import Checkpoint, Checkpoints, EventLog
from pulse_core.projections import BUILT_IN, Projected, fold
from pulse_core.projections.projected import WANTED

Facts = Callable[[], Projected]


class View:
    """Listens to the log and folds what came, in batches, when asked: the cost is the news, not the age.

    What the journal holds because it cannot be written is folded on top, until it is recorded.
    """

    def __init__(self, state: Projected | None = None) -> None:
        self._state = self._whole = state or Projected()
        self._news: list[Event] = []
        self._supposed: dict[str, Event] = {}
        self._stale = False

    def stand_at(self, state: Projected) -> None:
        """Go on from this state; what was heard before is part of it."""
        self._state = self._whole = state
        self._news.clear()

    def __call__(self) -> Projected:
        """The projections after the last event."""
        if self._stale:
            self._fold()
        return self._whole

    def recorded(self) -> Projected:
        """The projections after the last event that is on disk."""
        self()
        return self._state

    def _fold(self) -> None:
        if self._news:
            self._state = fold(self._state, self._news)
            self._news = []
        self._whole, self._stale = self._state, False
        if self._supposed:
            whole = fold(self._state, tuple(self._supposed.values()))
            self._whole = replace(whole, seq=self._state.seq, supposed=len(self._supposed))

    def hear(self, events: Sequence[Event]) -> None:
        """Take recorded events; a listener of the log."""
        self._news.extend(events)
        for event in events if self._supposed else ():
            self._supposed.pop(event.id, None)
        self._stale = True

    def imagine(self, events: Sequence[Event]) -> None:
        """Take events that are only supposed so far; a listener of the journal."""
        self._supposed.update((event.id, event) for event in events)
        self._stale = True


async def advanced(log: EventLog, state: Projected, target: int) -> Projected:
    """The projections moved on to row `target`."""
    async for events in log.since(state.seq, WANTED, target):
        state = fold(state, events)
    return fold(state, (), upto=target)


async def restored(log: EventLog, found: Mapping[str, Checkpoint]) -> Projected:
    """The checkpointed projections, or the empty ones if any of them is missing, old, or of another log."""
    heads = {checkpoint.head for name, checkpoint in found.items() if name in BUILT_IN}
    fits = len(heads) == 1 and all(
        name in found and found[name].version == projection.version for name, projection in BUILT_IN.items()
    )
    if not fits:
        return Projected()
    head = heads.pop()
    if await log.chain_at(head.seq) != head.chain:
        return Projected()
    try:
        states = {name: projection.load(found[name].state) for name, projection in BUILT_IN.items()}
    except ValueError:
        return Projected()  # a cache that cannot be read is no cache
    return Projected(head.seq, **states)  # type: ignore[arg-type]  # each load returns its own state


async def checkpoint(log: EventLog, checkpoints: Checkpoints, state: Projected) -> None:
    """Keep the projections as they stand at their row, unless they include what is only supposed."""
    if state.supposed:
        return
    chain = await log.chain_at(state.seq)
    if chain is None:
        return
    head = Head(state.seq, chain)
    await checkpoints.save(
        {
            name: Checkpoint(projection.version, head, projection.dump(getattr(state, name)))
            for name, projection in BUILT_IN.items()
        }
    )
