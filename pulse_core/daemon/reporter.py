"""Reports contained failures once: repetitions are counted, not recorded one by one."""

import asyncio
import logging
from collections import Counter

from pulse_core.model.errors import PulseError
from pulse_core.model.event import Draft
from pulse_core.model.kinds import ErrorReported
from pulse_core.model.secret_text import hide_secrets
from pulse_core.record.journal import Journal

QUIET_SECONDS = 600.0
KEPT = 500
DIFFERENT = 5
MOST_A_SECOND = 20
"""Failures of one family of sources (`rule:…`, `watcher:…`) that are recorded in a second; the others are counted."""
LOG = logging.getLogger("pulse.error")


class Reporter:
    """Takes failures at any rate; records the first of each, then one every ten minutes with a count.

    It records at most five different failures of one source in that time, and so many of one family in a second.
    """

    def __init__(self, journal: Journal) -> None:
        self.journal = journal
        self._reported: dict[tuple[str, str], tuple[float, int]] = {}
        """By whose and message: when it was last recorded (loop time), and how often it came again since."""
        self._recorded: Counter[str] = Counter()
        """By family, how many came in this second."""
        self._queue: asyncio.Queue[Draft] = asyncio.Queue(maxsize=KEPT)

    def __call__(self, whose: str, message: str, commit: str = "", ended: bool = False) -> None:
        """Report a failure of `whose`, without what is written as a secret; commit, ended: as in `ErrorReported`.

        Never blocks, never raises.
        """
        message = hide_secrets(message)
        now = asyncio.get_running_loop().time()
        at, repeats = self._reported.get((whose, message), (float("-inf"), 0))
        if now - at < QUIET_SECONDS:
            self._reported[whose, message] = at, repeats + 1
            return
        times = [at for (name, _), (at, _) in self._reported.items() if name == whose]
        if sum(now - at < QUIET_SECONDS for at in times) >= DIFFERENT:
            return  # more would flood the log
        if not self._has_room(whose.partition(":")[0]):
            return
        if len(self._reported) >= KEPT:
            self._reported.pop(next(iter(self._reported)))
        self._reported[whose, message] = now, 0
        LOG.warning("%s: %s", whose, message)
        if not self._queue.full():
            error = ErrorReported(message=message, repeats=repeats, commit=commit, ended=ended)
            self._queue.put_nowait(Draft(error, subject=whose))

    def _has_room(self, family: str) -> bool:
        if not self._recorded[family]:
            asyncio.get_running_loop().call_later(1.0, self._begin_second, family)
        self._recorded[family] += 1
        return self._recorded[family] <= MOST_A_SECOND

    def _begin_second(self, family: str) -> None:
        if (left_out := self._recorded.pop(family) - MOST_A_SECOND) > 0 and not self._queue.full():
            words = f"{left_out:,} more failures of this kind within a second are not recorded one by one"
            self._queue.put_nowait(Draft(ErrorReported(message=words), subject=f"{family}s"))

    def put(self, *drafts: Draft) -> None:
        """Record these soon; never blocks, never raises."""
        for draft in drafts[: self._queue.maxsize - self._queue.qsize()]:
            self._queue.put_nowait(draft)

    async def record(self, whose: str, *drafts: Draft) -> None:
        """Record drafts of `whose`, or hold them while the log can't be written; report it if neither is possible."""
        try:
            await self.journal.append_or_hold(*drafts)
        except PulseError as error:
            self(whose, f"{drafts[0].payload.kind} could not be recorded: {error}")

    async def run(self) -> None:
        """Record what was reported, for ever."""
        while True:
            draft = await self._queue.get()
            try:
                await self.journal.append(draft)
            except PulseError as error:
                LOG.error("%s: what was just reported of it is not recorded: %s", draft.subject, error)
