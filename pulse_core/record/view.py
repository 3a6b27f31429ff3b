"""The projections as of now: folded from the log on demand, and restored when the daemon starts."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from threading import get_ident

from pulse_core.composition import FOLD
from pulse_core.model.event import Checkpoint, Event, Head
from pulse_core.model.tick import TickRecord
from pulse_core.model.vitals import Window
from pulse_core.ports.log import EventLog
from pulse_core.ports.loops import join_in_slices
from pulse_core.ports.stores import Checkpoints, Vitals
from pulse_core.projections.state import Snapshot, State, encode_in_pieces
from pulse_core.settings.settings import Settings


class View:
    """Listens to the log and folds new events in batches when it is read: the cost depends on the new events alone.

    Provisional events of the journal are folded on top until recorded ones arrive. Those that will not be recorded
    count until then, too: a long outage must not forget how often something was restarted in it.

    Other threads than the one that events are told in may read it, as those that search for what a life has left: what they
    fold they keep to themselves, or events that come meanwhile would count twice, or not at all.
    """

    def __init__(self, state: State | None = None) -> None:
        self._whole = state or FOLD.start
        self._recorded: tuple[State, list[Event]] = self._whole, []
        """What is folded of the recorded events, and those after it: replaced as one."""
        self._provisional: dict[str, Event] = {}
        self._fresh: list[Event] = []
        self._stale, self._thread = False, 0

    def reset_to(self, state: State) -> None:
        """Continue from this state, which includes all events received before."""
        self._whole, self._recorded = state, (state, [])

    def __call__(self) -> State:
        """The projections after the last event."""
        if self._stale:
            if get_ident() != self._thread:
                return self._folded_apart()
            self._fold()
        return self._whole

    def recorded(self) -> State:
        """The projections after the last event that is on disk."""
        self()
        return self._recorded[0]

    def _fold(self) -> None:
        state, news = self._recorded
        if news:
            self._whole = state = FOLD(state, news)
            self._recorded, self._fresh = (state, []), list(self._provisional.values())
        if self._fresh:
            whole, self._fresh = FOLD(self._whole, self._fresh), []
            self._whole = replace(whole, seq=state.seq, provisional=len(self._provisional))
        self._stale = False

    def _folded_apart(self) -> State:
        """The same for another thread, of what there is at this moment; nothing here changes by it."""
        while True:
            recorded, held = self._recorded, tuple(self._provisional.values())
            state, news = recorded[0], tuple(recorded[1])
            if recorded is self._recorded:  # else what is held belongs to another one
                break
        known = {event.id for event in news}
        state = FOLD(state, news) if news else state
        if not (held := tuple(event for event in held if event.id not in known)):
            return state
        return replace(FOLD(state, held), seq=state.seq, provisional=len(held))

    def on_events(self, events: Sequence[Event]) -> None:
        """Take recorded events; a listener of the log."""
        self._recorded[1].extend(events)
        for event in events if self._provisional else ():
            self._provisional.pop(event.id, None)
        self._stale, self._thread = True, get_ident()

    def add_provisional(self, events: Sequence[Event]) -> None:
        """Take events that are provisional; a listener of the journal."""
        self._provisional.update((event.id, event) for event in events)
        self._fresh += events
        self._stale, self._thread = True, get_ident()

    def forget_provisional(self, ids: Sequence[str]) -> None:
        """Take the ids of provisional events that will not be recorded; a listener of the journal."""
        self()
        for id_ in ids:
            self._provisional.pop(id_, None)
        self._whole = replace(self._whole, provisional=len(self._provisional))


def _nothing() -> None: ...


async def advance_state(
    log: EventLog, state: State, target: int, progressed: Callable[[], None] = _nothing
) -> State:
    """Fold the state up to row `target`; `progressed` is called after each batch, in the thread that folds it."""

    def take(events: Sequence[Event]) -> None:
        nonlocal state
        state = FOLD(state, events)
        progressed()

    await log.feed(take, state.seq, FOLD.kinds, target)
    return FOLD(state, (), upto=target)


async def restore_from_checkpoints(
    log: EventLog, found: Mapping[str, Checkpoint], progressed: Callable[[], None] = _nothing
) -> State:
    """Restore the state at the furthest of these checkpoints.

    A projection whose checkpoint is missing, old, unreadable or of another log is folded anew up to there, alone.
    """
    ours = {one.head for one in found.values() if await log.chain_at(one.head.seq) == one.head.chain}
    catch_up = FOLD.resume({name: one for name, one in found.items() if one.head in ours})

    def take(events: Sequence[Event]) -> None:
        catch_up.take(events)
        progressed()

    for gap in catch_up.gaps():
        await log.feed(take, gap.since, gap.kinds, gap.upto)
    return catch_up.state


async def save_checkpoints(log: EventLog, checkpoints: Checkpoints, state: State) -> None:
    """Save checkpoints of the state, unless it includes provisional events."""
    if state.provisional:
        return
    if (chain := await log.chain_at(state.seq)) is not None:
        head = Head(state.seq, chain)
        saved = {
            name: Checkpoint(one.version, head, await join_in_slices(encode_in_pieces(state.of(one))))
            for name, one in FOLD.projections.items()
            if name not in state.broken  # an earlier one stays, from which a version that is mended can go on
        }
        await checkpoints.save(saved)


async def restore_state(
    log: EventLog,
    vitals: Vitals,
    checkpoints: Checkpoints,
    view: View,
    settings: Settings,
    progressed: Callable[[], None] = _nothing,
) -> Snapshot | None:
    """Bring the view to the head of the log; returns the snapshot of the last recorded tick, if there was one.

    What changed while no daemon ran lies between the two, so that it is still a change at the first tick.
    progressed: called after each batch of events, in the thread that folds them.
    """
    found, ticks = await checkpoints.load(), await vitals.ticks(1)
    prev, state = await _restored(log, vitals, ticks, found, settings, progressed)
    if found and state.control.redacted:  # what was taken out of the log is not to live on in a checkpoint
        prev, state = await _restored(log, vitals, ticks, {}, settings, progressed)
    view.reset_to(state)
    return prev


async def _restored(
    log: EventLog,
    vitals: Vitals,
    ticks: Sequence[TickRecord],
    found: Mapping[str, Checkpoint],
    settings: Settings,
    progressed: Callable[[], None],
) -> tuple[Snapshot | None, State]:
    """The snapshot of the last tick, and the state at the head of the log."""
    state = await restore_from_checkpoints(log, found, progressed)
    prev = None
    if ticks:
        # A checkpoint is a tick's state; if the record of that tick was lost, it stands for the last tick.
        # Provisional events that a tick saw and that were never recorded do not count.
        seen = min(ticks[-1].head.seq, log.head.seq)
        state = await advance_state(log, state, max(seen, state.seq), progressed)
        samples = await vitals.samples(ticks[-1].samples)  # as far as they are still stored
        windows = {sample.key: Window((sample,)) for sample in samples}
        prev = Snapshot(ticks[-1].tick, ticks[-1].moment, settings, windows, state)
    return prev, await advance_state(log, state, log.head.seq, progressed)
