"""The quiet work beside the loops: samples to disk, checkpoints, lateness, signs of life."""

import asyncio
from collections.abc import Callable, Sequence

from pulse_core.model.errors import PulseError
from pulse_core.model.moment import US_PER_SECOND
from pulse_core.ports import Checkpoints, Clock, EventLog, Lifeline, Vitals
from pulse_core.projections import Snapshot
from pulse_core.record.view import checkpoint
from pulse_core.settings import Settings

ROUND = 1.0
HOUR = 3_600.0


class Housekeeping:
    """Once a second: measures how late the loop is and flushes vitals; now and then a checkpoint, and old vitals go."""

    def __init__(
        self,
        log: EventLog,
        vitals: Vitals,
        checkpoints: Checkpoints,
        clock: Clock,
        settings: Callable[[], Settings],
        ticked: Callable[[], Snapshot | None],
        failed: Callable[[str, str], None],
    ) -> None:
        self.log, self.vitals, self.checkpoints = log, vitals, checkpoints
        self.clock, self.settings, self.ticked, self.failed = clock, settings, ticked, failed
        self._late = 0.0
        self._kept = -1
        self._soon = asyncio.Event()

    def lateness(self) -> float:
        """The worst lateness of the event loop since it was last asked, seconds."""
        late, self._late = self._late, 0.0
        return late

    def flush_soon(self) -> None:
        """Write vitals at once: somebody may ask why something was done."""
        self._soon.set()

    async def run(self) -> None:
        """Keep house for ever."""
        now = asyncio.get_running_loop().time
        kept, trimmed = now(), now() - HOUR
        while True:
            await self._rest()
            await self.vitals.flush()
            if now() - trimmed >= HOUR:
                trimmed = now()
                await self.vitals.trim(self.clock.now().at - self.settings().watch.keep)
            if now() - kept >= self.settings().daemon.checkpoint_every / US_PER_SECOND:
                kept = now()
                await self.keep()

    async def _rest(self) -> None:
        """Wait for the next round, and notice how late the loop lets it begin."""
        now = asyncio.get_running_loop().time
        due = now() + ROUND
        try:
            async with asyncio.timeout(ROUND):
                await self._soon.wait()
            self._soon.clear()
        except TimeoutError:
            self._late = max(self._late, now() - due)

    async def keep(self) -> None:
        """Checkpoint the projections as the last tick saw them, if they moved on since."""
        last = self.ticked()
        if last is None or last.projected.seq == self._kept:
            return
        try:
            await checkpoint(self.log, self.checkpoints, last.projected)
            self._kept = last.projected.seq
        except PulseError as error:
            self.failed("checkpoint", str(error))


async def heartbeat(lifeline: Lifeline, beats: Callable[[], Sequence[int]], ask: Callable[[], None]) -> None:
    """Pass on signs of life, for ever: only when every loop has turned since the last one was asked for."""
    seconds = lifeline.watchdog_seconds()
    if seconds is None:
        await asyncio.Event().wait()  # nobody wants to know
        return
    while True:
        before = beats()
        ask()
        await asyncio.sleep(seconds / 4)
        if all(now > then for now, then in zip(beats(), before, strict=True)):
            lifeline.watchdog()
