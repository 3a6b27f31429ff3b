"""The quiet work beside the loops: samples to disk, checkpoints, lateness, signs of life."""

import asyncio
from collections.abc import Callable, Sequence

from pulse_core.daemon.self_monitor import SelfMonitor
from pulse_core.model.errors import PulseError
from pulse_core.model.moment import US_PER_SECOND
from pulse_core.ports import Checkpoints, EventLog, ServiceManager, Vitals
from pulse_core.projections import Snapshot
from pulse_core.record.view import save_checkpoints
from pulse_core.settings import Settings

INTERVAL = 1.0


class Housekeeping:
    """Once a second: measures how late the loop is, looks at what Pulse takes, and flushes vitals; now and then a
    checkpoint."""

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
        """The worst lateness of the event loop since it was last asked, seconds."""
        late, self._late = self._late, 0.0
        return late

    def flush_soon(self) -> None:
        """Write vitals at once: somebody may ask why something was done."""
        self._soon.set()

    async def run(self) -> None:
        """Keep house for ever."""
        now = asyncio.get_running_loop().time
        kept = now()
        while True:
            asked = await self._rest()
            await self.budget.look()
            if asked or not self.budget.skips_vitals:
                await self.vitals.flush()
            else:
                self.vitals.forget()
            if now() - kept >= self.settings().daemon.checkpoint_every / US_PER_SECOND:
                kept = now()
                await self.keep()

    async def _rest(self) -> bool:
        """Wait for the next round, and notice how late the loop lets it begin; whether somebody asks for vitals."""
        now = asyncio.get_running_loop().time
        due = now() + INTERVAL
        try:
            async with asyncio.timeout(INTERVAL):
                await self._soon.wait()
        except TimeoutError:
            self._late = max(self._late, now() - due)
            return False
        self._soon.clear()
        return True

    async def keep(self) -> None:
        """Checkpoint the projections as the last tick saw them, if they moved on since."""
        last = self.ticked()
        if last is None or last.state.seq == self._kept:
            return
        try:
            await save_checkpoints(self.log, self.checkpoints, last.state)
            self._kept = last.state.seq
        except PulseError as error:
            self.failed("checkpoint", str(error))


async def heartbeat(
    service_manager: ServiceManager, beats: Callable[[], Sequence[int]], ask: Callable[[], None]
) -> None:
    """Pass on signs of life, for ever: only when every loop has turned since the last one was asked for."""
    seconds = service_manager.watchdog_seconds()
    if seconds is None:
        await asyncio.Event().wait()  # nobody wants to know
        return
    while True:
        if await loops_progress(beats, ask, seconds / 4):
            service_manager.watchdog()


async def loops_progress(beats: Callable[[], Sequence[int]], ask: Callable[[], None], seconds: float) -> bool:
    """Whether every loop turns within these seconds of being asked to; returns when they are over."""
    before = beats()
    ask()
    await asyncio.sleep(seconds)
    return all(now > then for now, then in zip(beats(), before, strict=True))
