"""One life of a child, as the daemon sees it: requests go out, replies come back, and its end is seen."""

import asyncio
import fcntl
import os
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from typing import Any

from pulse_adapters.child.frames import LARGEST_REPLY, Frames, Garbled, Message, packed
from pulse_adapters.child.given import MARK, REPLIES, REQUESTS, SHARED, WHERE

_CHUNK = 256 * 1024
_ABOVE = 10
"""Descriptors of ours are above those that the child is given, so that none is overwritten on its way."""
_DYING = 0.05
_PAGE = 4096
_SEALS = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL
_THEIRS = (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGINT, signal.SIGTERM, signal.SIGUSR1)

Said = Callable[[Message], None]
Action = tuple[Any, ...]


def argv(module: str) -> tuple[str, ...]:
    """How a child that runs this module is started."""
    return (sys.executable, "-P", "-s", "-m", module)


class Process:
    """A running child. said: called with each reply; gone: once, when there will be no more. Raises OSError.

    finite: a reply with a number that is none is garbled. keeps_number: it is not reaped when it dies, so that nobody
    else has its number until `reap`.
    """

    def __init__(
        self,
        argv: tuple[str, ...],
        env: Mapping[str, str],
        said: Said,
        gone: Callable[[], None],
        *,
        finite: bool = False,
        keeps_number: bool = False,
    ) -> None:
        self._said, self._gone, self._kept = said, gone, os.WNOWAIT if keeps_number else 0
        self._loop = asyncio.get_running_loop()
        self._frames = Frames(LARGEST_REPLY, finite)
        self._unsent = bytearray()
        self._ours = ExitStack()
        self.garbled = ""
        self.dead: asyncio.Future[int] = self._loop.create_future()
        with ExitStack() as theirs, ExitStack() as failing:
            failing.push(self._ours)
            self._begin(argv, env, theirs)
            failing.pop_all()
        self._is_open = True
        self._loop.add_reader(self._replies, self._read)
        self._loop.add_reader(self._handle, self._died)

    def _begin(self, argv: tuple[str, ...], env: Mapping[str, str], theirs: ExitStack) -> None:
        requests, self._requests = pipe(theirs, self._ours)
        self._replies, replies = pipe(self._ours, theirs)
        self._where, where = pipe(self._ours, theirs)
        self._shared = _own(os.memfd_create("mark", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING), self._ours)
        os.truncate(self._shared, _PAGE)
        fcntl.fcntl(self._shared, fcntl.F_ADD_SEALS, _SEALS)
        for end in (self._requests, self._replies, self._where, where):
            os.set_blocking(end, False)
        given = {replies: REPLIES, self._shared: SHARED, where: WHERE, requests: REQUESTS}
        self.pid = os.posix_spawn(
            argv[0],
            argv,
            env,
            file_actions=[
                *self._standard(theirs),
                *((os.POSIX_SPAWN_DUP2, one, place) for one, place in given.items()),
            ],
            setsid=True,
            setsigmask=(signal.SIGUSR1,),  # until it knows what to do about it
            setsigdef=_THEIRS,
        )
        self._handle = os.pidfd_open(self.pid)
        self._ours.callback(os.close, self._handle)

    def _standard(self, theirs: ExitStack) -> Sequence[Action]:
        """What becomes of the standard three: they lead nowhere."""
        return [(os.POSIX_SPAWN_OPEN, place, os.devnull, os.O_RDWR, 0) for place in range(3)]

    def send(self, message: Message) -> None:
        """Send a request without waiting; what the child does not take yet follows as soon as it does."""
        if not self._is_open:
            return
        waits = bool(self._unsent)
        self._unsent += packed(message)
        if not waits:
            self._write()
            if self._unsent:
                self._loop.add_writer(self._requests, self._write_more)

    def _write_more(self) -> None:
        self._write()
        if not self._unsent:
            self._loop.remove_writer(self._requests)

    def _write(self) -> None:
        try:
            del self._unsent[: os.write(self._requests, self._unsent)]
        except BlockingIOError:
            return
        except OSError:
            self._unsent.clear()  # it is dead, and its end will be seen

    def _read(self) -> None:
        try:
            raw = os.read(self._replies, _CHUNK)
        except BlockingIOError:
            return
        if not raw:
            self._shut()
            self._loop.call_later(_DYING, self.kill)  # it is dying, or has closed its pipe
            return
        try:
            for message in self._frames.take(raw):
                self._said(message)
        except Garbled as error:
            self.spoil(str(error))

    def spoil(self, words: str) -> None:
        """It has said what it must not: it is ended."""
        self.garbled = self.garbled or words
        self.kill()

    def ask_where(self) -> None:
        """Have it say where it is, even if it does not listen."""
        self._signal(signal.SIGUSR1)

    def where(self) -> str:
        """What it said about where it was."""
        with suppress(BlockingIOError):
            return os.read(self._where, _CHUNK).decode("utf-8", "replace")
        return ""

    def mark(self) -> int:
        """What is under way, 0 for nothing; the child may have written anything there."""
        return int.from_bytes(os.pread(self._shared, MARK, 0), "little")

    def kill(self) -> None:
        """End it at once; it says nothing more."""
        self._signal(signal.SIGKILL)
        self._shut()

    def hang_up(self) -> None:
        """Send nothing more: it ends by itself when it has read what was sent."""
        if self._is_open and not self._unsent:
            quiet = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
            os.dup2(quiet, self._requests, inheritable=False)
            os.close(quiet)

    def end(self) -> str:
        """How it ended, in words."""
        code = self.dead.result() if self.dead.done() else 0
        return f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with status {code}"

    def _signal(self, number: signal.Signals) -> None:
        if not self.dead.done():
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._handle, number)

    def _shut(self) -> None:
        if self._is_open:
            self._is_open = False
            self._loop.remove_reader(self._replies)
            self._loop.remove_writer(self._requests)
            self._gone()

    def _died(self) -> None:
        code = -signal.SIGKILL.value
        with suppress(ChildProcessError):  # reaped by somebody else in this process
            ended = os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | self._kept)
            if ended is None:
                return
            code = ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status
        self._loop.remove_reader(self._handle)
        self.dead.set_result(code)
        if self._is_open:
            self._read()  # what it said last
        self._shut()

    def reap(self) -> None:
        """Let somebody else have its number."""
        with suppress(ChildProcessError):
            os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG)

    def close(self) -> None:
        """Let go of everything; of one that is not dead, too, which the kernel does not let go."""
        self._loop.remove_reader(self._handle)
        self._ours.close()


def pipe(reader: ExitStack, writer: ExitStack) -> tuple[int, int]:
    """A pipe whose ends are closed by their keepers."""
    read, write = os.pipe2(os.O_CLOEXEC)
    return _own(read, reader), _own(write, writer)


def _own(descriptor: int, engine_controller: ExitStack) -> int:
    """The same descriptor above those of the child, closed by its keeper."""
    moved = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, _ABOVE)
    os.close(descriptor)
    engine_controller.callback(os.close, moved)
    return moved
