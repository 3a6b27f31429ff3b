"""The daemon's side of one worker process: sends requests, receives replies, and observes its end.

Everything happens on the event loop and nothing waits: a worker that does not read has its requests kept here, one that
prints without end is cut off, one that does not die is left to the kernel.
"""

import asyncio
import fcntl
import os
import select
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from typing import NamedTuple

from pulse_adapters.workers.descriptors import REPLIES, REQUESTS
from pulse_adapters.workers.environment import python_environment
from pulse_adapters.workers.framing import Frames, Message, WorkerFault, encode
from pulse_adapters.workers.messages import LIMITS, Limits, parse
from pulse_adapters.workers.output import Output
from pulse_adapters.workers.spawn import TRACED_S, find_program, nowhere, spawn
from pulse_core.model.text import signal_name

_CHUNK = 8 * 1024
"""Bytes that are read at a time: the loop turns after the messages in them, of which there may be hundreds."""
_PIPE = 64 * 1024
"""Bytes that a pipe holds."""
_ABOVE = 10
"""Descriptors of ours are above those that a worker is given, so that none is overwritten on its way."""
_DYING = 0.05
_WORDS = 300

Heard = Callable[[Message], None]


class Program(NamedTuple):
    """What a worker runs. env: all of its environment; limits: of what it may say; is_heard: what it prints is kept."""

    argv: tuple[str, ...]
    env: Mapping[str, str]
    limits: Limits = LIMITS
    is_heard: bool = True


def module_program(
    name: str, *words: str, options: Sequence[str] = ("-P",), env: Mapping[str, str] | None = None
) -> Program:
    """A module of ours as a worker's program.

    options: of Python. `-P`: files where it is started must not pass for Python's own. It writes byte code if we do.
    """
    given = python_environment() if env is None else env
    silent = {"PYTHONDONTWRITEBYTECODE": "1"} if sys.dont_write_bytecode else {}
    return Program((sys.executable, *options, "-m", name, *words), {**given, **silent})


class Worker:
    """A running worker. heard: called with each message; gone: once, when there will be no more. Raises OSError.

    What `heard` raises as `WorkerFault` is a fault of the worker, as what is wrong with its messages is: it is ended,
    and `fault` says why. keeps_number: it is not reaped when it dies, so that nobody else has its number until `reap`.
    """

    def __init__(
        self, program: Program, heard: Heard, gone: Callable[[], None], *, keeps_number: bool = False
    ) -> None:
        self._heard, self._gone, self._kept = heard, gone, os.WNOWAIT if keeps_number else 0
        self._limits = program.limits
        self._loop = asyncio.get_running_loop()
        self._frames = Frames(program.limits.size)
        self._unsent = bytearray()
        self._ours = ExitStack()
        self._is_open = self._is_read = True
        self._is_closed = False
        self.output: Output | None = None
        self.fault = ""
        self.dead: asyncio.Future[int] = self._loop.create_future()
        with ExitStack() as theirs, ExitStack() as failing:
            failing.push(self._ours)
            self._begin(program, theirs)
            failing.pop_all()
        self._loop.add_reader(self._replies, self._read)
        self._loop.add_reader(self._handle, self._died)

    def _begin(self, program: Program, theirs: ExitStack) -> None:
        requests, self._requests = pipe(theirs, self._ours)
        self._replies, replies = pipe(self._ours, theirs)
        given = {REPLIES: replies, REQUESTS: requests, **self._given(theirs)}
        if program.is_heard:
            printed, printing = pipe(self._ours, theirs)
            os.set_blocking(printing, False)  # what nobody takes is lost to it, and it does not wait
            given |= {1: printing, 2: printing}
        for end in (self._requests, self._replies):
            os.set_blocking(end, False)
        argv = program.argv
        path = find_program(argv[0], program.env)
        self.pid = spawn(path, argv, program.env, given, blocked=self._blocked())
        self._handle = os.pidfd_open(self.pid)
        self._ours.callback(os.close, self._handle)
        if program.is_heard:
            self.output = Output(printed)
            self._ours.callback(self.output.close)

    def _given(self, theirs: ExitStack) -> Mapping[int, int]:
        """More descriptors that it is given, by their number there."""
        return {}

    def _blocked(self) -> Sequence[signal.Signals]:
        """Signals that it knows nothing to do about at first."""
        return ()

    def send(self, message: Mapping[str, object]) -> None:
        """Send a request without waiting; what the worker does not read yet is buffered."""
        self.write(encode(message))

    def write(self, frame: bytes) -> None:
        """Send a message that is already encoded."""
        if not self._is_open:
            return
        waits = bool(self._unsent)
        self._unsent += frame
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

    def pause(self) -> None:
        """Stop reading: messages stay in the pipe, and in the end the worker blocks."""
        if self._is_open and self._is_read:
            self._is_read = False
            self._loop.remove_reader(self._replies)

    def resume(self) -> None:
        """Read on."""
        if self._is_open and not self._is_read:
            self._is_read = True
            self._loop.add_reader(self._replies, self._read)

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
            for body in self._frames.take(raw):
                self._heard(parse(body, self._limits))
        except Exception as error:  # noqa: BLE001 - it is what came of the worker's words, whatever it is
            self.refuse(error)

    def read_rest(self) -> None:
        """Take what it has said by now: at its end, or where the loop was held up."""
        for _ in range(_PIPE // _CHUNK):
            if self._is_open:
                self._read()

    def refuse(self, error: Exception) -> None:
        """Kill the worker, since what it sent has led to this error."""
        match error:
            case WorkerFault():
                words = str(error)
            case OSError():  # as when the daemon has no descriptor left
                words = f"what the system did not let the daemon take up ({error.strerror or error})"
            case _:
                words = f"what nobody understands ({type(error).__name__}: {error})"
        self.spoil(words[:_WORDS])

    def spoil(self, words: str) -> None:
        """Kill the worker, since it sent something invalid."""
        self.fault = self.fault or words
        self.kill()

    def kill(self) -> None:
        """Kill it with its process group; no more messages are delivered."""
        self._signal(signal.SIGKILL)
        self._shut()

    def terminate(self) -> None:
        """Send SIGTERM to its process group."""
        self._signal(signal.SIGTERM)

    def hang_up(self) -> None:
        """Close the request pipe: the worker exits when it has read what was sent."""
        if self._is_open and not self._unsent:
            os.dup2(nowhere(), self._requests, inheritable=False)

    @property
    def has_ended(self) -> bool:
        """Whether it is known to be dead."""
        return self.dead.done()

    def end(self) -> str:
        """How it ended, in words."""
        code = self.dead.result() if self.dead.done() else 0
        return f"was ended by {signal_name(-code)}" if code < 0 else f"ended with status {code}"

    def last_words(self) -> str:
        """The end of what it printed, on one line."""
        if self.output is None:
            return ""
        if not self._is_closed:
            self.output.drain()
        return self.output.words()[-_WORDS:].lstrip()

    def _signal(self, number: signal.Signals) -> None:
        # While it is not reaped, neither its number nor its group is anybody else's; nor is its handle until that is closed.
        if not (self.dead.done() or self._is_closed):
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, number)
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._handle, number)

    def _shut(self) -> None:
        if self._is_open:
            self._is_open = False
            self._loop.remove_reader(self._replies)
            self._loop.remove_writer(self._requests)
            self._gone()

    def _died(self) -> None:
        if self.dead.done() or self._is_closed:
            return
        code = -signal.SIGKILL.value
        with suppress(ChildProcessError):  # reaped by somebody else in this process
            ended = os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | self._kept)
            if ended is None:  # a tracer holds it
                self._loop.remove_reader(self._handle)
                self._loop.call_later(TRACED_S, self._died)
                return
            code = ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status
        self._loop.remove_reader(self._handle)
        self.dead.set_result(code)
        self.read_rest()
        self._shut()

    async def ended(self, seconds: float) -> bool:
        """Whether it ends within these seconds."""
        await asyncio.wait([self.dead], timeout=seconds)
        return self.dead.done()

    def reap(self) -> None:
        """Reap it, so that its pid becomes free."""
        with suppress(ChildProcessError):
            os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG)

    def close(self) -> None:
        """Release everything, even if the process can't be killed."""
        if not self._is_closed:
            self._is_closed = True
            self._loop.remove_reader(self._handle)
            self._ours.close()

    def dismiss(self) -> None:
        """Kill it, and release everything once it is dead, without waiting for that."""
        self.kill()
        if self.dead.done():
            self.close()
        else:
            self.dead.add_done_callback(lambda _: self.close())

    def end_now(self, seconds: float = 1.0) -> None:
        """End it, and wait for that, but no longer than this; for the end of the daemon, whose loop turns no more."""
        self.kill()
        if not self.dead.done() and not self._is_closed:
            death = select.poll()
            death.register(self._handle, select.POLLIN)
            death.poll(seconds * 1000)
            self._died()
        self.close()


def pipe(reader: ExitStack, writer: ExitStack) -> tuple[int, int]:
    """A pipe whose ends are closed by their keepers."""
    read, write = os.pipe2(os.O_CLOEXEC)
    try:
        ours = duplicate_descriptor(read, reader)
    except OSError:
        os.close(write)
        raise
    return ours, duplicate_descriptor(write, writer)


def duplicate_descriptor(descriptor: int, keepers: ExitStack) -> int:
    """Duplicate a descriptor above the numbers that a worker uses; the exit stack closes it.

    The given one is closed, also where none is left. Raises OSError.
    """
    try:
        moved = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, _ABOVE)
    finally:
        os.close(descriptor)
    keepers.callback(os.close, moved)
    return moved
