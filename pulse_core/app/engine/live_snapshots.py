"""What rules would see at this moment: each tick beside a daemon that runs, or this machine alone."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace

from pulse_core.app.context import HomeContext
from pulse_core.app.engine.recorded_ticks import RecordedTick, SampleWindows
from pulse_core.app.state import current_snapshot, current_state, foldable, history_of, settings_for, state_at
from pulse_core.composition import FOLD
from pulse_core.model.event import Event
from pulse_core.model.tick import TickRecord
from pulse_core.model.vitals import WINDOW_US, Sample, Window
from pulse_core.ports.readers import EventQuery
from pulse_core.ports.watcher import Watcher
from pulse_core.projections.state import Snapshot, State
from pulse_core.settings.settings import Settings

LOOK = 0.1
"""Seconds between two looks for a new tick; the daemon writes them down once a second, and at once if one wished."""
SELDOM = 1.0
"""The same where nobody looks on."""
AT_ONCE = 100


class DaemonTicks:
    """The ticks that a daemon records, read beside it. is_patient: goes on when the daemon ends, for the next one.

    first: the snapshot that a host begins with; words: where they come from. So it is with `MachineSamples`, too.
    """

    def __init__(self, home: HomeContext, is_patient: bool = False) -> None:
        self.home, self.is_patient = home, is_patient
        self.words = "beside the daemon, on its ticks"
        self._open = ExitStack()
        self._log = self._open.enter_context(home.events())
        self._vitals = self._open.enter_context(home.vitals())
        self._state, self._number = State(), 0
        self._settings, self._digest = Settings(), ""
        self._windows, self._sample, self._since = SampleWindows(), 0, 0
        self.first = self._begun()

    def close(self) -> None:
        """Let go of the files."""
        self._open.close()

    async def ticks(self) -> AsyncIterator[RecordedTick]:
        """Each recorded tick, soon after it was."""
        while True:
            count = 0
            for row in self._vitals.ticks_after(self._number, AT_ONCE):
                if row.head.seq > self._log.head().seq:
                    break  # it has seen what is not recorded yet
                count += 1
                if row.head.seq < self._state.seq or row.moment.at < self._since:
                    self._number = row.tick  # it was before the first snapshot, and is only recorded now
                    continue
                yield self._then(row)
            if not count and not self.is_patient and self.home.daemon.lock_holder() is None:
                return
            if count < AT_ONCE:
                await asyncio.sleep(SELDOM if self.is_patient else LOOK)

    def _begun(self) -> Snapshot:
        """The last tick, so that a host has something to fold at once; what is known now if there was none."""
        if not (rows := self._vitals.ticks(1)):
            first = replace(current_snapshot(self.home).snapshot, tick=0)
            self._state, self._settings = first.state, first.settings
            self._since = first.now.at
            return first
        self._state = state_at(self.home, self._log, rows[0].head.seq)
        return self._then(rows[0]).snapshot

    def _then(self, row: TickRecord) -> RecordedTick:
        news = self._news(row.head.seq)
        self._number = row.tick
        self._state = FOLD(self._state, news, row.head.seq) if news else self._state
        if row.settings != self._digest:
            self._digest = row.settings
            self._settings = settings_for(self.home, self._state).settings
        windows = self._windows.at(row, self._samples(row))
        seen = Snapshot(row.tick, row.moment, self._settings, windows, self._state)
        return RecordedTick(seen, news, row.effects)

    def _news(self, upto: int) -> list[Event]:
        if upto <= self._state.seq:
            return []
        rows = self._log.events(EventQuery(since_seq=self._state.seq), limit=upto - self._state.seq)
        return [foldable(row) for row in rows]

    def _samples(self, row: TickRecord) -> Sequence[Sample]:
        """Those that this tick is the first to name."""
        before, self._sample = self._sample, max(self._sample, *row.samples, 0)
        if self._sample == before:
            return ()
        lately = self._vitals.between(row.moment.at - WINDOW_US, row.moment.at)
        return [one for one in lately if before < one.id <= self._sample]


class MachineSamples:
    """This machine's vital signs, sampled here and held in memory; nothing is recorded, and no process is looked for.

    Ends when a daemon has begun.
    """

    def __init__(self, home: HomeContext, sense: Watcher) -> None:
        self.home, self.sense = home, sense
        self.words = "alone on this machine's vital signs: no daemon runs"
        state = current_state(home)
        settings = settings_for(home, state).settings
        self.first = self._last = Snapshot(0, home.clock.now(), settings, {}, state)

    @classmethod
    async def begun(cls, home: HomeContext, sense: Watcher) -> "MachineSamples":
        """One that has sensed the machine once."""
        begun = cls(home, sense)
        begun.first = (await begun.sensed()).snapshot
        return begun

    async def ticks(self) -> AsyncIterator[RecordedTick]:
        """A snapshot after each sample."""
        while await self._rested():
            yield await self.sensed()

    async def _rested(self) -> bool:
        """Wait until the next sample is due; whether nobody has begun meanwhile who does it better."""
        now = asyncio.get_running_loop().time
        until = now() + self.sense.interval
        while now() < until:
            if self.home.daemon.lock_holder():
                return False
            await asyncio.sleep(LOOK)
        return True

    async def sensed(self) -> RecordedTick:
        """A snapshot with one sample more."""
        reading, now, last = await self.sense.collect(), self.home.clock.now(), self._last
        window = last.window(self.sense.key)
        sample = Sample(window.last.id + 1 if window.last else 1, self.sense.key, now, reading.data)
        windows: Mapping[str, Window] = {self.sense.key: window.plus(sample)}
        news = [event async for batch in history_of(self.home)(last.state.seq) for event in batch]
        state = FOLD(last.state, news) if news else last.state
        self._last = Snapshot(last.tick + 1, now, last.settings, windows, state)
        return RecordedTick(self._last, news, ())


LiveSnapshots = DaemonTicks | MachineSamples
"""Snapshots as they come, later than `first`, each with what is new in the log."""
