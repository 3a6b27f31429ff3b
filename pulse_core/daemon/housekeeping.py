"""Periodic work beside the loops: flushes vitals, saves checkpoints, measures lateness."""

import asyncio
from collections.abc import Callable

from pulse_core.daemon.load_shedding import SelfMonitor
from pulse_core.model.errors import PulseError
from pulse_core.model.moment import US_PER_SECOND
from pulse_core.ports import Checkpoints, EventLog, Vitals
from pulse_core.projections import Snapshot
from pulse_core.record.view import save_checkpoints
from pulse_core.settings import Settings

INTERVAL = 1.0


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
        """Wait for the next round and measure how late it begins; returns whether a flush was requested."""
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
        """Checkpoint the projections as of the last tick, if they have changed since the last checkpoint."""
        last = self.ticked()
        if last is None or last.state.seq == self._kept:
            return
        try:
            await save_checkpoints(self.log, self.checkpoints, last.state)
            self._kept = last.state.seq
        except PulseError as error:
            self.failed("checkpoint", str(error))
