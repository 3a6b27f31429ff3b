"""Garbage collection: deletes unused data once an hour and when a person requests it."""

import asyncio
from collections.abc import Callable, Sequence

from pulse_core.app.gc import collect_garbage
from pulse_core.model.errors import PulseError
from pulse_core.model.event import Draft, Event
from pulse_core.model.kinds import GcDone, GcRequested
from pulse_core.ports import Clock, Sweep, Vitals
from pulse_core.record import Journal
from pulse_core.settings import Settings

FIRST_DELAY = 300.0
"""Seconds between the start and the first run: other work is more urgent then."""

HOUR = 3_600.0


class GarbageCollection:
    """Rolls up old vitals, then deletes unused files. Each step is small, so that it blocks nobody; failures are reported.

    failed(whose, message) is called for each failure; the answer to a request names it, too.
    """

    def __init__(
        self,
        vitals: Vitals,
        sweep: Sweep,
        journal: Journal,
        clock: Clock,
        settings: Callable[[], Settings],
        failed: Callable[[str, str], None],
    ) -> None:
        self.vitals, self.sweep, self.journal = vitals, sweep, journal
        self.clock, self.settings, self.failed = clock, settings, failed
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
            request = await self._asked_within(rest)
            rest = HOUR
            done = await collect_garbage(self.vitals, self.sweep, self.clock.now().at, self.settings().watch)
            if done.fault:
                self.failed("gc", done.fault)
            if request:
                await self._answer(request, done)

    async def _asked_within(self, seconds: float) -> Event | None:
        try:
            async with asyncio.timeout(seconds):
                return await self._asked.get()
        except TimeoutError:
            return None

    async def _answer(self, request: Event, done: GcDone) -> None:
        try:
            await self.journal.append_or_hold(Draft(done, cause=request.id))
        except PulseError as error:
            self.failed("gc", f"its answer could not be recorded: {error}")
