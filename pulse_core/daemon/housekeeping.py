"""Periodic work beside the loops: flushes vitals, saves checkpoints, measures lateness, and collects garbage."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress

from pulse_core.app.gc import collect_garbage
from pulse_core.daemon.load_shedding import NO_VITALS, SelfMonitor
from pulse_core.daemon.reporter import Reporter
from pulse_core.model.errors import PulseError
from pulse_core.model.event import Draft, Event
from pulse_core.model.kinds import GcRequested
from pulse_core.model.moment import US_PER_SECOND
from pulse_core.ports.clock import Clock
from pulse_core.ports.log import EventLog
from pulse_core.ports.loops import coalesced, wait_within
from pulse_core.ports.stores import Checkpoints, Sweep, Vitals
from pulse_core.projections.state import Snapshot
from pulse_core.record.view import save_checkpoints
from pulse_core.settings.settings import Settings

INTERVAL = 1.0
FIRST_DELAY = 300.0
"""Seconds between the start and the first run: other work is more urgent then."""

HOUR = 3_600.0


class Housekeeping:
    """Once a second: measures the loop's lateness, updates load shedding, and flushes vitals; saves checkpoints at
    their interval."""

    def __init__(
        self,
        log: EventLog,
        vitals: Vitals,
        checkpoints: Checkpoints,
        settings: Callable[[], Settings],
        ticked: Callable[[], Snapshot | None],
        failed: Callable[[str, str], None],
        budget: SelfMonitor,
    ) -> None:
        self.log, self.vitals, self.checkpoints, self.budget = log, vitals, checkpoints, budget
        self.settings, self.ticked, self.failed = settings, ticked, failed
        self._late = 0.0
        self._kept = -1
        self._soon = asyncio.Event()

    def lateness(self) -> float:
        """The worst lateness of the event loop since the last call, seconds."""
        late, self._late = self._late, 0.0
        return late

    def flush_soon(self) -> None:
        """Flush vitals in the next round: `why` may need them at once."""
        self._soon.set()

    async def run(self) -> None:
        """Do the periodic work for ever."""
        now = asyncio.get_running_loop().time
        kept = now()
        while True:
            due = now() + (rest := coalesced(INTERVAL))
            if not await wait_within(self._soon, rest):
                self._late = max(self._late, now() - due)
            await self.budget.look()
            if self._soon.is_set() or self.budget.shed.level < NO_VITALS:
                self._soon.clear()
                await self.vitals.flush()
                if self.vitals.trouble:
                    self.failed("vitals", self.vitals.trouble)
            else:
                self.vitals.forget()
            if now() - kept >= self.settings().daemon.checkpoint_every / US_PER_SECOND:
                kept = now()
                await self.keep()

    async def keep(self) -> None:
        """Checkpoint the projections as of the last tick, if they have changed since the last checkpoint."""
        last = self.ticked()
        if last is None or last.state.seq == self._kept:
            return
        try:
            await save_checkpoints(self.log, self.checkpoints, last.state)
            self._kept = last.state.seq
        except PulseError as error:
            self.failed("checkpoint", str(error))


class GarbageCollection:
    """Rolls up old vitals, then deletes unused files. Each step is small, so that it blocks nobody.

    Failures are reported; the answer to a request names them, too.
    """

    def __init__(
        self,
        vitals: Vitals,
        sweep: Sweep,
        clock: Clock,
        settings: Callable[[], Settings],
        reporter: Reporter,
    ) -> None:
        self.vitals, self.sweep = vitals, sweep
        self.clock, self.settings, self.reporter = clock, settings, reporter
        self._asked: asyncio.Queue[Event] = asyncio.Queue()

    def on_events(self, events: Sequence[Event]) -> None:
        """Take recorded requests; a listener of the log."""
        for event in events:
            if event.kind == GcRequested.kind:
                self._asked.put_nowait(event)

    async def run(self) -> None:
        """Collect garbage for ever."""
        rest = FIRST_DELAY
        while True:
            request = None
            with suppress(TimeoutError):
                async with asyncio.timeout(rest):
                    request = await self._asked.get()
            rest = HOUR
            done = await collect_garbage(self.vitals, self.sweep, self.clock.now().at, self.settings().watch)
            if done.fault:
                self.reporter("gc", done.fault)
            if request:
                await self.reporter.record("gc", Draft(done, cause=request.id))
