"""Garbage collection: deletes unused data once an hour and when a person requests it."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress

from pulse_core.app.gc import collect_garbage
from pulse_core.daemon.reporter import Reporter
from pulse_core.model.event import Draft, Event
from pulse_core.model.kinds import GcRequested
from pulse_core.ports import Clock, Sweep, Vitals
from pulse_core.settings import Settings

FIRST_DELAY = 300.0
"""Seconds between the start and the first run: other work is more urgent then."""

HOUR = 3_600.0


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
