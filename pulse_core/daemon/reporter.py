"""Reports contained failures once: repetitions are counted, not recorded one by one."""

import asyncio
import logging
from dataclasses import dataclass

from pulse_core.model.errors import PulseError
from pulse_core.model.event import Draft
from pulse_core.model.kinds import ErrorReported
from pulse_core.ports import EventLog

QUIET_SECONDS = 600.0
KEPT = 500
DIFFERENT = 5
LOG = logging.getLogger("pulse.error")


@dataclass
class ReportedError:
    """When this was last recorded (loop time), and how often it came again since."""

    at: float
    repeats: int = 0


class Reporter:
    """Takes failures at any rate; records the first of each, then one every ten minutes with a count.

    It records at most five different failures of one source in that time.
    """

    def __init__(self, log: EventLog) -> None:
        self.log = log
        self._said: dict[tuple[str, str], ReportedError] = {}
        self._queue: asyncio.Queue[Draft] = asyncio.Queue(maxsize=KEPT)

    def __call__(self, whose: str, message: str, commit: str = "", ended: bool = False) -> None:
        """Report a failure of `whose`; commit, ended: as in `ErrorReported`. Never blocks, never raises."""
        now = asyncio.get_running_loop().time()
        said = self._said.get((whose, message))
        if said and now - said.at < QUIET_SECONDS:
            said.repeats += 1
            return
        if self._is_flooding(whose, now):
            return
        if len(self._said) >= KEPT:
            self._said.pop(next(iter(self._said)))
        self._said[whose, message] = ReportedError(now)
        LOG.warning("%s: %s", whose, message)
        repeats = said.repeats if said else 0
        if not self._queue.full():
            said_now = ErrorReported(message=message, repeats=repeats, commit=commit, ended=ended)
            self._queue.put_nowait(Draft(said_now, subject=whose))

    def _is_flooding(self, whose: str, now: float) -> bool:
        """Whether so many different failures of this source were recorded lately that more would flood the log."""
        lately = [
            said for (name, _), said in self._said.items() if name == whose and now - said.at < QUIET_SECONDS
        ]
        return len(lately) >= DIFFERENT

    async def run(self) -> None:
        """Record what was reported, for ever."""
        while True:
            draft = await self._queue.get()
            try:
                await self.log.append(draft)
            except PulseError as error:
                LOG.error("%s: %s (not recorded: %s)", draft.subject, draft.payload, error)
