"""One life of a child, as the daemon sees it: requests go out, replies come back, and it is reaped when it dies."""

import asyncio
import fcntl
import os
import signal
import sys
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from typing import Any

from pulse_adapters.rule_host.frames import LARGEST_REPLY, Frames, Garbled
from pulse_adapters.rule_host.output import Output

ARGV = (sys.executable, "-P", "-s", "-m", "pulse_adapters.rule_host.child")
_CHUNK = 256 * 1024
_ABOVE = 10
"""Descriptors of ours are above those that the child is given, so that none is overwritten on its way."""
_MARK = 2
_DYING = 0.05
_SEALS = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL
_PAGE = 4096

Said = Callable[[dict[str, Any]], None]


class Process:
    """A running child. said: called with each reply; gone: once, when there will be no more. Raises OSError."""

    def __init__(self, env: Mapping[str, str], said: Said, gone: Callable[[], None]) -> None:
        self._said, self._gone = said, gone
        self._loop = asyncio.get_running_loop()
        self._frames = Frames(LARGEST_REPLY)
        self._unsent = bytearray()
        self.garbled = ""
        self.reaped: asyncio.Future[int] = self._loop.create_future()
        with ExitStack() as theirs:
            self._begin(env, theirs)
        self.output = Output(self._printed)
        self._is_open = True
        self._loop.add_reader(self._replies, self._read)
        self._loop.add_reader(self._handle, self._reap)

    def _begin(self, env: Mapping[str, str], theirs: ExitStack) -> None:
        ours = ExitStack()
        with ExitStack() as failing:
            failing.push(ours)
            requests, self._requests = _pipe(theirs, ours)
            self._replies, replies = _pipe(ours, theirs)
            self._printed, printed = _pipe(ours, theirs)
            self._where, where = _pipe(ours, theirs)
            self._shared = _own(os.memfd_create("unit", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING), ours)
            os.truncate(self._shared, _PAGE)
            fcntl.fcntl(self._shared, fcntl.F_ADD_SEALS, _SEALS)
            for end in (self._requests, self._replies, self._where, printed, where):
                os.set_blocking(end, False)
            given = (requests, printed, printed, replies, self._shared, where)
            self.pid = os.posix_spawn(
                ARGV[0],
                ARGV,
                env,
                file_actions=[(os.POSIX_SPAWN_DUP2, one, place) for place, one in enumerate(given)],
                setsid=True,
                setsigmask=(signal.SIGUSR1,),  # until it knows what to do about it
                setsigdef=(signal.SIGPIPE, signal.SIGXFSZ, signal.SIGINT, signal.SIGTERM, signal.SIGUSR1),
            )
            self._handle = os.pidfd_open(self.pid)
            failing.pop_all()

    def send(self, frame: bytes) -> None:
        """Send a request without waiting; what the child does not take yet follows as soon as it does."""
        if not self._is_open:
            return
        if not self._unsent:
            self._loop.add_writer(self._requests, self._write)
        self._unsent += frame
        self._write()

    def _write(self) -> None:
        try:
            del self._unsent[: os.write(self._requests, self._unsent)]
        except BlockingIOError:
            return
        except OSError:
            self._unsent.clear()  # it is dead, and its end will be seen
        if not self._unsent:
            self._loop.remove_writer(self._requests)

    def _read(self) -> None:
        try:
            raw = os.read(self._replies, _CHUNK)
        except BlockingIOError:
            return
        if not raw:
            self._shut()
            self._loop.call_later(_DYING, self._signal, signal.SIGKILL)  # it is dying, or has closed its pipe
            return
        try:
            for message in self._frames.take(raw):
                self._said(message)
        except Garbled as error:
            self.spoil(str(error))

    def spoil(self, words: str) -> None:
        """It has said what it must not: it is ended."""
        self.garbled = words
        self.kill()

    def ask_where(self) -> None:
        """Have it say where it is, even if it does not listen."""
        self._signal(signal.SIGUSR1)

    def where(self) -> str:
        """What it said about where it was."""
        with suppress(BlockingIOError):
            return os.read(self._where, _CHUNK).decode("utf-8", "replace")
        return ""

    def unit(self) -> int | None:
        """The place of the unit under way, if any; the child may have written anything there."""
        mark = int.from_bytes(os.pread(self._shared, _MARK, 0), "little")
        return mark - 1 if mark else None

    def kill(self) -> None:
        """End it at once; it says nothing more."""
        self._signal(signal.SIGKILL)
        self._shut()

    def hang_up(self) -> None:
        """Send nothing more: it ends by itself when it has read what was sent."""
        if self._is_open and not self._unsent:
            os.close(self._requests)
            self._requests = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)

    def _signal(self, number: signal.Signals) -> None:
        if not self.reaped.done():
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._handle, number)

    def _shut(self) -> None:
        if self._is_open:
            self._is_open = False
            self._loop.remove_reader(self._replies)
            self._loop.remove_writer(self._requests)
            self._gone()

    def _reap(self) -> None:
        code = -signal.SIGKILL.value
        with suppress(ChildProcessError):  # reaped by somebody else in this process
            ended = os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG)
            if ended is None:
                return
            code = ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status
        self._loop.remove_reader(self._handle)
        os.close(self._handle)
        self.reaped.set_result(code)
        if self._is_open:
            self._read()  # what it said last
        self._shut()

    def close(self) -> None:
        """Let go of everything; it must be reaped."""
        self.output.close()
        for one in (self._requests, self._replies, self._where, self._shared):
            os.close(one)


def _own(descriptor: int, keeper: ExitStack) -> int:
    """The same descriptor above those of the child, closed by its keeper."""
    moved = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, _ABOVE)
    os.close(descriptor)
    keeper.callback(os.close, moved)
    return moved


def _pipe(reader: ExitStack, writer: ExitStack) -> tuple[int, int]:
    read, write = os.pipe2(os.O_CLOEXEC)
    return _own(read, reader), _own(write, writer)
