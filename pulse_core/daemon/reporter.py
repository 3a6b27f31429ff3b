"""Reports contained failures: each once, and its repetitions together."""

import asyncio
import logging
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import chain

from pulse_core.model.errors import PulseError
from pulse_core.model.event import Draft
from pulse_core.model.kinds import ErrorReported
from pulse_core.model.moment import Moment
from pulse_core.model.secret_text import hide_secrets
from pulse_core.record.journal import Journal

QUIET_SECONDS = 600.0
KEPT = 500
DIFFERENT = 5
MOST_A_SECOND = 20
"""Failures of one family of sources (`rule:…`, `watcher:…`) that are recorded in a second; the others are counted."""
LOG = logging.getLogger("pulse.error")


@dataclass
class _Failure:
    """A failure that was recorded: the draft of that, when (loop time), when it came first, how often it came since, and
    when last; is_lost: the log could not take the first one."""

    draft: Draft
    at: float
    first: Moment
    repeats: int = 0
    last: Moment | None = None
    is_lost: bool = False


class Reporter:
    """Takes failures at any rate; records the first of each, and those that follow together, ten minutes later.

    It records at most five different failures of one source in that time, and so many of one family in a second.
    """

    def __init__(self, journal: Journal) -> None:
        self.journal = journal
        self._reported: dict[tuple[str, str, str], _Failure] = {}
        """By whose, commit and message: what another commit does is no repetition."""
        self._recorded: Counter[str] = Counter()
        """By family, how many came in this second."""
        self._queue: asyncio.Queue[Draft] = asyncio.Queue(maxsize=KEPT)

    def __call__(self, whose: str, message: str, commit: str = "", ended: bool = False) -> None:
        """Report a failure of `whose`, without what is written as a secret; commit, ended: as in `ErrorReported`.

        Never blocks, never raises.
        """
        message = hide_secrets(message)
        loop, key = asyncio.get_running_loop(), (whose, commit, message)
        now, known = loop.time(), self._reported.get(key)
        if known and now - known.at < QUIET_SECONDS:
            self._count(known, 1, self.journal.clock.now())
            return
        times = [one.at for (*of, _), one in self._reported.items() if of == [whose, commit]]
        if sum(now - at < QUIET_SECONDS for at in times) >= DIFFERENT:
            return  # more would flood the log
        if not self._has_room(whose.partition(":")[0]):
            return
        if len(self._reported) >= KEPT:
            self._record_repeats(self._reported.pop(next(iter(self._reported))))
        LOG.warning("%s: %s", whose, message)
        error = ErrorReported(message=message, commit=commit, ended=ended)
        self._reported[key] = failure = _Failure(Draft(error, subject=whose), now, self.journal.clock.now())
        self.put(failure.draft)

    def _count(self, failure: _Failure, more: int, last: Moment) -> None:
        """Count so many as came again, and have them recorded when it is time."""
        if not failure.repeats:
            again_at = failure.at + QUIET_SECONDS
            asyncio.get_running_loop().call_at(again_at, self._record_repeats, failure)
        failure.repeats, failure.last = failure.repeats + more, last

    def _record_repeats(self, failure: _Failure) -> None:
        """Record how often it came since it was recorded, as of when it last came."""
        if failure.repeats:
            failure.at = asyncio.get_running_loop().time()
            self.put(*self._take_repeats(failure))

    def _take_repeats(self, failure: _Failure) -> Iterator[Draft]:
        if failure.is_lost:  # or they would have begun with their last one
            failure.is_lost = False
            yield replace(failure.draft, moment=failure.first)
        more, failure.repeats = failure.repeats, 0
        error = failure.draft.payload.model_copy(update={"repeats": more - 1})
        yield replace(failure.draft, payload=error, moment=failure.last)

    def rest(self) -> list[Draft]:
        """What is not recorded yet, for the end of the daemon."""
        waiting = [self._queue.get_nowait() for _ in range(self._queue.qsize())]
        repeated = (one for one in self._reported.values() if one.repeats)
        return [*waiting, *chain.from_iterable(map(self._take_repeats, repeated))]

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
                self._keep(draft)

    def _keep(self, draft: Draft) -> None:
        """Have the failures that the log could not take recorded with those that come again."""
        error = draft.payload
        if not isinstance(error, ErrorReported):
            return
        # Not by its message: that is longer, or has what no log can hold, before it is a payload.
        told = (draft.subject, error.commit, error.message)
        known = next((one for one in self._reported.values() if _told(one.draft) == told), None)
        if known is None:
            return
        if error is known.draft.payload:
            known.is_lost = True
        elif draft.moment:
            self._count(known, error.repeats + 1, (known.repeats and known.last) or draft.moment)


def _told(draft: Draft) -> tuple[str, str, str]:
    """Whose failure it is, of which commit, and what is recorded of it in words."""
    assert isinstance(draft.payload, ErrorReported)
    return draft.subject, draft.payload.commit, draft.payload.message
