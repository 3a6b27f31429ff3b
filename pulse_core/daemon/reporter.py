"""Reports contained failures once: repetitions are counted, not recorded one by one."""

import asyncio
import logging
from dataclasses import dataclass

from pulse_core.model.errors import PulseError
from pulse_core.model.event import Draft
from pulse_core.model.kinds import ErrorReported
from pulse_core.record import Journal

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

    def __init__(self, journal: Journal) -> None:
        self.journal = journal
        self._reported: dict[tuple[str, str], ReportedError] = {}
        self._queue: asyncio.Queue[Draft] = asyncio.Queue(maxsize=KEPT)

    def __call__(self, whose: str, message: str, commit: str = "", ended: bool = False) -> None:
        """Report a failure of `whose`; commit, ended: as in `ErrorReported`. Never blocks, never raises."""
        now = asyncio.get_running_loop().time()
        earlier = self._reported.get((whose, message))
        if earlier and now - earlier.at < QUIET_SECONDS:
            earlier.repeats += 1
            return
        lately = (one for (name, _), one in self._reported.items() if name == whose)
        if sum(now - one.at < QUIET_SECONDS for one in lately) >= DIFFERENT:
            return  # more would flood the log
        if len(self._reported) >= KEPT:
            self._reported.pop(next(iter(self._reported)))
        self._reported[whose, message] = ReportedError(now)
        LOG.warning("%s: %s", whose, message)
        repeats = earlier.repeats if earlier else 0
        if not self._queue.full():
            error = ErrorReported(message=message, repeats=repeats, commit=commit, ended=ended)
            self._queue.put_nowait(Draft(error, subject=whose))

    async def record(self, whose: str, draft: Draft) -> None:
        """Record a draft of `whose`, or hold it while the log can't be written; report it if neither is possible."""
        try:
            await self.journal.append_or_hold(draft)
        except PulseError as error:
            self(whose, f"{draft.payload.kind} could not be recorded: {error}")

    async def run(self) -> None:
        """Record what was reported, for ever."""
        while True:
            draft = await self._queue.get()
            try:
                await self.journal.append(draft)
            except PulseError as error:
                LOG.error("%s: %s (not recorded: %s)", draft.subject, draft.payload, error)
