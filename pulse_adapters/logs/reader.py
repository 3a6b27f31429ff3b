"""The child that reads: kept alive, listened to, told again where it was when it has died."""

import asyncio
import logging
import os
import subprocess
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack, suppress
from importlib.util import find_spec
from pathlib import Path

from pulse_adapters.logs.messages import Complaint, message_of, task
from pulse_core.model.backoff import Backoff
from pulse_core.ports import LogBatch, Place, ReadProgress
from pulse_core.settings import LogSettings

LOG = logging.getLogger("pulse.logs")
BACKOFF = Backoff(0.5, 300.0)
SILENCE = 60.0
"""Seconds without a word after which the child is taken for stuck; it says something every fifteen."""
QUEUE = 500
"""Messages that wait to be taken before no more are read: then the child waits, and the lines stay where they are."""
_ROOM = 256 * 1024
_ROOT = str(Path(__file__).parents[2])
_RE2 = find_spec("re2")
_PATHS = (_ROOT, *(str(Path(one).parent) for one in (_RE2 and _RE2.submodule_search_locations) or ()))
_ARGV = (sys.executable, "-S", "-P", "-m", "pulse_adapters.logs.tail")


def _log(whose: str, message: str) -> None:
    LOG.error("%s: %s", whose, message)


class FollowedLogs:
    """`LogReader` on files and journald, through one child process; no child while there is nothing to follow.

    failed: called with (whose, message) for what a person should know; journalctl: the program for units.
    """

    def __init__(
        self, failed: Callable[[str, str], None] = _log, journalctl: Sequence[str] = ("journalctl",)
    ) -> None:
        self._failed, self._journalctl = failed, tuple(journalctl)
        self._news: Callable[[], None] = lambda: None
        self._heard: list[LogBatch | ReadProgress] = []
        self._logs: tuple[LogSettings, ...] = ()
        self._places: dict[str, Place] = {}
        self._known: set[str] = set()
        self._child: subprocess.Popen[bytes] | None = None
        self._said = -1
        self._buffer = b""
        self._timer: asyncio.TimerHandle | None = None
        self._failures = 0
        self._waiting = False
        self._standing = asyncio.Event()

    @property
    def running(self) -> frozenset[int]:
        """The pid of the child, which is its session's id too; `journalctl` runs in the same session."""
        return frozenset({self._child.pid} if self._child else ())

    def listen(self, news: Callable[[], None]) -> None:
        """Call back whenever there is something to be taken."""
        self._news = news

    def follow(
        self, logs: Sequence[LogSettings], places: Mapping[str, Place], known: Collection[str]
    ) -> None:
        """Follow these and nothing else from now on, each source from its place."""
        self._end()
        self._heard.clear()
        self._logs, self._places = tuple(logs), dict(places)
        self._known = {os.path.expanduser(one) for one in known}
        self._failures = 0
        self._standing.clear()
        if logs:
            self._begin()

    async def standing(self, seconds: float) -> None:
        """Return once it knows what is there, so that whatever is written from now on is news; or after so long."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._standing.wait()

    def take(self) -> Sequence[LogBatch | ReadProgress]:
        """What was heard since the last time, in its order."""
        heard, self._heard = self._heard, []
        if self._waiting and self._child:
            self._listen_to(self._child)
        return heard

    def close(self) -> None:
        """End the child."""
        self._end()

    # The child

    def _begin(self) -> None:
        paths = [os.path.expanduser(log.path) if log.path else None for log in self._logs]
        work = task(self._logs, self._places, self._known, paths, self._journalctl)
        try:
            self._child = self._spawned(work)
        except OSError as error:
            self._again(f"cannot be started: {error.strerror}")
            return
        self._buffer = b""
        self._listen_to(self._child)
        self._expect_word()

    def _spawned(self, work: bytes) -> "subprocess.Popen[bytes]":
        with ExitStack() as opened:
            said = os.memfd_create("said", os.MFD_CLOEXEC)
            opened.callback(os.close, said)
            given = os.memfd_create("task", os.MFD_CLOEXEC)
            opened.callback(os.close, given)
            os.write(given, work)
            os.lseek(given, 0, os.SEEK_SET)
            child = subprocess.Popen(
                _ARGV, stdin=given, stdout=subprocess.PIPE, stderr=said, cwd="/", start_new_session=True,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(_PATHS)},
            )  # fmt: skip
            assert child.stdout is not None
            os.set_blocking(child.stdout.fileno(), False)
            self._said = os.dup(said)
            return child

    def _listen_to(self, child: "subprocess.Popen[bytes]") -> None:
        assert child.stdout is not None
        self._waiting = False
        asyncio.get_running_loop().add_reader(child.stdout.fileno(), self._hear, child)

    def _hear(self, child: "subprocess.Popen[bytes]") -> None:
        assert child.stdout is not None
        try:
            raw = os.read(child.stdout.fileno(), _ROOM)
        except BlockingIOError:
            return
        if not raw:
            self._died(child)
            return
        *lines, self._buffer = (self._buffer + raw).split(b"\n")
        for line in lines:
            self._take_in(line)
        if lines:
            self._expect_word()
        if self._heard:
            self._news()
        if len(self._heard) >= QUEUE:
            self._waiting = True
            asyncio.get_running_loop().remove_reader(child.stdout.fileno())

    def _take_in(self, line: bytes) -> None:
        try:
            message = message_of(line)
        except (ValueError, KeyError, TypeError) as error:
            self._failed("log-reader", f"it said something that nobody understands: {error}")
            return
        match message:
            case Complaint(whose, words):
                self._failed(f"log:{whose}", words)
                return
            case LogBatch(source, place):
                self._places[source] = place
            case ReadProgress(sources, places):
                self._places.update(places)
                self._places = {name: place for name, place in self._places.items() if name in sources}
                self._known.update(os.path.expanduser(log.path) for log in self._logs if log.path)
                self._failures = 0
                self._standing.set()
        self._heard.append(message)

    def _expect_word(self) -> None:
        if self._timer:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_later(SILENCE, self._stuck)

    def _stuck(self) -> None:
        if self._waiting:
            self._expect_word()  # it waits for us
        elif self._child:
            self._child.kill()
            self._again(f"said nothing for {SILENCE:g} s and is begun again")

    def _died(self, child: "subprocess.Popen[bytes]") -> None:
        child.kill()
        code, words = child.wait(), self._last_words()
        how = f"status {code}" if code >= 0 else f"signal {-code}"
        self._again(f"ended ({how}) and is begun again{f': {words}' if words else ''}")

    def _last_words(self) -> str:
        text = os.pread(self._said, 65_536, 0)[-400:].decode("utf-8", "replace")
        return " ".join(text.split())

    def _again(self, words: str) -> None:
        """Say what was wrong, and begin anew after a pause that grows."""
        self._end()
        self._failed("log-reader", words)
        self._failures += 1
        self._timer = asyncio.get_running_loop().call_later(BACKOFF.after(self._failures), self._begin)

    def _end(self) -> None:
        """End the child; what it has said to the end of a line is kept, and it begins behind that."""
        if self._timer:
            self._timer.cancel()
            self._timer = None
        if (child := self._child) is None:
            return
        assert child.stdout is not None
        with suppress(RuntimeError):  # the loop may be closed already
            asyncio.get_running_loop().remove_reader(child.stdout.fileno())
        child.kill()
        child.wait()
        child.stdout.close()
        os.close(self._said)
        self._child, self._waiting = None, False
