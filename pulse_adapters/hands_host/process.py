"""One life of the child, as the daemon sees it: requests go out, replies come back, and its end is the whole tree's."""

import asyncio
import fcntl
import os
import signal
import sys
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress

from pulse_adapters.hands_host import tree
from pulse_adapters.hands_host.frames import LARGEST_REPLY, Frames, Garbled, Message, packed
from pulse_adapters.hands_host.marks import BYTES

ARGV = (sys.executable, "-P", "-s", "-m", "pulse_adapters.hands_host.child")
_CHUNK = 256 * 1024
_ABOVE = 10
"""Descriptors of ours are above those that the child is given, so that none is overwritten on its way."""
_PAGE = 4096
_NOWHERE = [(os.POSIX_SPAWN_OPEN, place, os.devnull, os.O_RDWR, 0) for place in range(3)]


class Process:
    """A running child. said: called with each reply; gone: once, when there will be no more. Raises OSError.

    env holds the mark, `NAME=VALUE`, by which all that comes out of the child is known.
    """

    def __init__(
        self, env: Mapping[str, str], mark: str, said: Callable[[Message], None], gone: Callable[[], None]
    ) -> None:
        self._said, self._gone, self._mark = said, gone, mark
        self._loop = asyncio.get_running_loop()
        self._frames = Frames(LARGEST_REPLY)
        self._unsent = bytearray()
        self._ours = ExitStack()
        self.garbled = ""
        self.dead: asyncio.Future[int] = self._loop.create_future()
        with ExitStack() as theirs, ExitStack() as failing:
            failing.push(self._ours)
            self._begin(env, theirs)
            failing.pop_all()
        self._is_open = True
        self._loop.add_reader(self._replies, self._read)
        self._loop.add_reader(self._handle, self._died)

    def _begin(self, env: Mapping[str, str], theirs: ExitStack) -> None:
        ours = self._ours
        requests, self._requests = _pipe(theirs, ours)
        self._replies, replies = _pipe(ours, theirs)
        self._where, where = _pipe(ours, theirs)
        self._shared = _own(os.memfd_create("call", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING), ours)
        os.truncate(self._shared, _PAGE)
        fcntl.fcntl(
            self._shared, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL
        )
        for end in (self._requests, self._replies, self._where, where):
            os.set_blocking(end, False)
        given = (replies, self._shared, where, requests)
        self.pid = os.posix_spawn(
            ARGV[0],
            ARGV,
            env,
            file_actions=[
                *_NOWHERE,
                *((os.POSIX_SPAWN_DUP2, one, place) for place, one in enumerate(given, 3)),
            ],
            setsid=True,
            setsigmask=(),
            setsigdef=(signal.SIGPIPE, signal.SIGXFSZ, signal.SIGINT, signal.SIGTERM, signal.SIGUSR1),
        )
        self._handle = os.pidfd_open(self.pid)
        ours.callback(os.close, self._handle)

    def send(self, message: Message) -> None:
        """Send a request without waiting; what the child does not take yet follows as soon as it does."""
        if not self._is_open:
            return
        if not self._unsent:
            self._loop.add_writer(self._requests, self._write)
        self._unsent += packed(message)
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
            self.kill()  # it is dying, or has closed its pipe
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

    def call(self) -> int:
        """The number of the call whose code runs, 0 for none; the child may have written anything there."""
        return int.from_bytes(os.pread(self._shared, BYTES, 0), "little")

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
        """Take note of its end; it keeps its number until its tree is ended, so that no other session has it."""
        self._loop.remove_reader(self._handle)
        code = -signal.SIGKILL.value
        with suppress(ChildProcessError):  # reaped by somebody else in this process
            ended = os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            if ended:
                code = ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status
        self.dead.set_result(code)
        if self._is_open:
            self._read()  # what it said last
        self._shut()

    async def clear(self, is_orderly: bool) -> bool:
        """End what came out of it, once it is dead, and let go of everything; whether nothing is left.

        is_orderly: what has made a session of its own, as a service does, may go on.
        """
        _, undead = await asyncio.wait([self.dead], timeout=tree.PATIENCE)
        if undead:  # it sleeps uninterruptibly
            self._loop.remove_reader(self._handle)
            self._ours.close()
            return False
        chosen = tree.in_session(self.pid) if is_orderly else tree.whole(self.pid, self._mark)
        try:
            return await asyncio.to_thread(tree.end, chosen)
        finally:
            self._let_go()

    def _let_go(self) -> None:
        with suppress(ChildProcessError):
            os.waitid(os.P_PID, self.pid, os.WEXITED)
        self._ours.close()


def _own(descriptor: int, keeper: ExitStack) -> int:
    """The same descriptor above those of the child, closed by its keeper."""
    moved = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, _ABOVE)
    os.close(descriptor)
    keeper.callback(os.close, moved)
    return moved


def _pipe(reader: ExitStack, writer: ExitStack) -> tuple[int, int]:
    read, write = os.pipe2(os.O_CLOEXEC)
    return _own(read, reader), _own(write, writer)
