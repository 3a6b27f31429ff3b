"""Asks file systems that may never answer: a dead file server holds up nobody but who needs it."""

import asyncio
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, NamedTuple, TypeVar

PATIENCE_S = 2.0
"""Seconds within which a file system answers, or counts as dead."""

_LOCAL = frozenset(
    b"bcachefs bpf btrfs cgroup cgroup2 configfs debugfs devpts devtmpfs efivarfs erofs exfat ext2 ext3 ext4 f2fs hugetlbfs "
    b"iso9660 jfs mqueue nsfs overlay proc pstore ramfs securityfs squashfs sysfs tmpfs tracefs vfat xfs zfs".split()
)
"""Kinds of file systems that the kernel answers for by itself, from a disk of this machine or from memory."""
_KERNELS_OWN = (b"/proc/", b"/sys/", b"/dev/")
"""Where systemd has an `autofs`, and the kernel its control files: no program lies there."""

REMEMBERED_S = 1.0
"""Seconds for which it is known what is mounted."""

Answer = TypeVar("Answer")


def has_others(table: str = "/proc/self/mountinfo") -> bool:
    """Whether a file system is mounted here that a server or a program answers for, and that may thus never answer.

    This reads what the kernel remembers, and asks no file system.
    """
    with open(table, "rb") as lines:
        for line in lines:
            place, kind = line.split(b" ", 5)[4], line.partition(b" - ")[2].partition(b" ")[0]
            if kind not in _LOCAL and not place.startswith(_KERNELS_OWN):
                return True
    return False


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
            self._looked, self._found = now, self._look()
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
    """

    def __init__(
        self, patience_s: float = PATIENCE_S, *, is_needed: Callable[[], bool] | None = None
    ) -> None:
        self.patience_s, self._is_needed = patience_s, is_needed or RecentMounts()
        self._open: dict[tuple[str, str], _Question] = {}

    async def ask(self, about: str, question: Callable[[], Answer], key: str = "") -> Answer:
        """What the question answers or raises; while the same one (about this, with this key) is open, its answer.

        Raises TimeoutError if that is open for too long.
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
        asked = self._open[about, key] = _Question(loop.time(), asyncio.Event(), Future())

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

        if self._is_needed():
            threading.Thread(target=ask_and_tell, name="file system", daemon=True).start()
        else:
            ask()
        return asked
