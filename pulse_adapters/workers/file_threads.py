"""Asks file systems that may never answer: a dead file server holds up nobody but who needs it."""

import asyncio
import os
import signal
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple

from pulse_adapters.workers import file_systems
from pulse_adapters.workers.file_systems import Answer, ask_in_child, ends, has_others
from pulse_adapters.workers.threads import ThreadShortage, start_thread

REMEMBERED_S = 1.0
"""Seconds for which it is known what is mounted."""
_LONGEST_S = 60
"""Seconds after which a child that still asks is ended: a fork of many threads may wait for one that it does not have."""


class RecentMounts:
    """Tells whether such a file system is mounted, or was a moment ago: a restart asks three times."""

    def __init__(
        self, look: Callable[[], bool] = has_others, now: Callable[[], float] = time.monotonic
    ) -> None:
        self._look, self._now = look, now
        self._looked, self._found = float("-inf"), False

    def __call__(self) -> bool:
        """Whether one was, a second ago at the most."""
        if (now := self._now()) - self._looked >= REMEMBERED_S:
            self._looked = now
            with suppress(OSError):  # no descriptor is left to look with
                self._found = self._look()
        return self._found


class _Question(NamedTuple):
    """One that is not answered yet, or just was; since: in the loop's time."""

    since: float
    over: asyncio.Event
    answer: "Future[Any]"


class FileThreads:
    """Each question has a thread of its own: the loop goes on meanwhile, and the end of the daemon waits for none.

    is_needed: whether it has; else it is asked at once, as where all file systems are the kernel's own: the thread costs
    three milliseconds, as long as all else of a restart.
    in_child: whether a child, which holds nothing of its parent, asks first, and the thread what has an answer by then:
    no signal ends who waits for a server that has read what it was asked, and a daemon with such a thread would keep the
    home's lock even if it is killed. So it may be asked twice.
    most: how many may be open where callers name what is asked: threads count in the limit of processes.
    """

    def __init__(
        self,
        patience_s: float | None = None,
        *,
        is_needed: Callable[[], bool] | None = None,
        in_child: bool = True,
        most: int | None = None,
    ) -> None:
        self.patience_s = file_systems.PATIENCE_S if patience_s is None else patience_s
        self._in_child, self._has_others = in_child, RecentMounts()
        self._is_needed, self._most = is_needed or self._has_others, most
        self._open: dict[tuple[str, str], _Question] = {}

    async def ask(self, about: str, question: Callable[[], Answer], key: str = "") -> Answer:
        """What the question answers or raises; while the same one (about this, with this key) is open, its answer.

        Raises TimeoutError if that is open for too long, or no thread can be had to ask it.
        """
        found: Answer = await self._answer(about, self.begin(about, question, key))
        return found

    async def take(
        self, about: str, question: Callable[[], Answer], give_back: Callable[[Answer], object]
    ) -> Answer:
        """As `ask`, for what only one may have: while one is open all others fail, and what comes too late is given back."""
        if (about, "") in self._open:
            raise TimeoutError(f"the file system of {about} does not answer")
        asked = self.begin(about, question)
        try:
            found: Answer = await self._answer(about, asked)
            return found
        except (TimeoutError, asyncio.CancelledError):
            asked.answer.add_done_callback(lambda late: late.exception() or give_back(late.result()))
            raise

    async def _answer(self, about: str, asked: _Question) -> Any:
        if asked.answer.done():
            return asked.answer.result()
        rest = asked.since + self.patience_s - asyncio.get_running_loop().time()
        try:
            async with asyncio.timeout(max(0.0, rest)):
                await asked.over.wait()
        except TimeoutError:
            raise TimeoutError(f"the file system of {about} does not answer") from None
        return asked.answer.result()

    def begin(self, about: str, question: Callable[[], object], key: str = "") -> _Question:
        """Ask, and wait for nothing."""
        if (asked := self._open.get((about, key))) is not None:
            return asked
        loop = asyncio.get_running_loop()
        asked = _Question(loop.time(), asyncio.Event(), Future())
        if self._most and len(self._open) >= self._most:
            asked.answer.set_exception(TimeoutError(f"the file system of {about} does not answer"))
            return asked
        self._open[about, key] = asked

        if (needs_thread := self._is_needed()) and self._in_child and self._has_others():
            question = partial(ask_after_child, about, question)

        def ask() -> None:
            try:
                asked.answer.set_result(question())
            except Exception as error:  # noqa: BLE001 - it is raised where the answer is awaited
                asked.answer.set_exception(error)
            del self._open[about, key]

        def ask_and_tell() -> None:
            ask()
            with suppress(RuntimeError):  # the loop is closed: nobody waits any more
                loop.call_soon_threadsafe(asked.over.set)

        if needs_thread:
            try:
                start_thread(ask_and_tell, "file system")
            except BlockingIOError as error:
                del self._open[about, key]
                asked.answer.set_exception(ThreadShortage(f"{about} can't be asked: {error.strerror}"))
        else:
            ask()
        return asked


def ask_after_child(about: str, question: Callable[[], Answer]) -> Answer:
    """What the question answers or raises, once a child has an answer; raises TimeoutError, too. For threads."""
    child = ask_in_child(question)
    try:
        ends(child, _LONGEST_S)
    except OSError:  # no descriptor is left to wait for it with
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        raise
    if os.WIFSIGNALED(os.waitpid(child, 0)[1]):  # it was killed, perhaps only once its file system let it end
        raise TimeoutError(f"the file system of {about} does not answer")
    return question()
