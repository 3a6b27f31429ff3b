"""Restores the daemon's state at its start: the last snapshot, and the events recorded since."""

from pulse_core.model.tick import TickRecord
from pulse_core.model.vitals import Window
from pulse_core.ports import Checkpoints, EventLog, Vitals
from pulse_core.projections import Snapshot, State
from pulse_core.record.view import View, advance_state, restore_from_checkpoints
from pulse_core.settings import Settings


async def restore_state(
    log: EventLog, vitals: Vitals, checkpoints: Checkpoints, view: View, settings: Settings
) -> Snapshot | None:
    """Bring the view to the head of the log; returns the snapshot of the last recorded tick, if there was one.

    What changed while no daemon ran lies between the two, so that it is still a change at the first tick.
    """
    state = await restore_from_checkpoints(log, await checkpoints.load())
    ticks = await vitals.ticks(1)
    prev = None
    if ticks:
        # A checkpoint is a tick's state; if the record of that tick was lost, it stands for the last tick.
        # Provisional events that a tick saw and that were never recorded do not count.
        seen = min(ticks[-1].head.seq, log.head.seq)
        state = await advance_state(log, state, max(seen, state.seq))
        prev = await snapshot_of(ticks[-1], vitals, state, settings)
    view.reset_to(await advance_state(log, state, log.head.seq))
    return prev


async def snapshot_of(record: TickRecord, vitals: Vitals, state: State, settings: Settings) -> Snapshot:
    """The snapshot of this tick, as far as its samples are still stored."""
    samples = await vitals.samples(record.samples)
    windows = {sample.key: Window((sample,)) for sample in samples}
    return Snapshot(record.tick, record.moment, settings, windows, state)
