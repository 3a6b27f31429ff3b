"""Starts processes that outlive Pulse, runs commands to their end, and ends processes."""

import asyncio
import os
import signal
import time
from collections.abc import Coroutine, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from pulse_adapters.host.boot import require_linux
from pulse_adapters.host.children import REMEMBERED, Children
from pulse_adapters.host.outputs import FileOutput, MemoryOutput, end_of_output, open_output
from pulse_adapters.host.process_starter import ProcessStarter
from pulse_adapters.host.tree import end_tree, tree_members
from pulse_adapters.workers.environment import EFFECT_MARK
from pulse_adapters.workers.proc import is_alive, read_stat
from pulse_core.model.errors import PulseError
from pulse_core.ports import ProcessId


class Outcome(NamedTuple):
    """How a command ended: its exit code (negative: the signal), its output, and seconds."""

    exit: int
    output: str
    took: float


class ProcessEnded(NamedTuple):
    """How a process that was started here has ended.

    code: its exit code, negative for a signal; lived: seconds; effect: the `PULSE_EFFECT` it was started with.
    """

    code: int
    lived: float
    effect: str


@dataclass
class _StartedChild:
    """A process that was started here: its start time in clock ticks, and start and end in monotonic seconds."""

    started: int
    effect: str
    began: float
    ended: float | None = None

    def end(self, _exited: object) -> None:
        """Record the time of its end."""
        self.ended = time.monotonic()


class CommandTimedOut(PulseError):
    """A command was ended because it took too long; `left` are its processes that could not be ended."""

    def __init__(self, program: str, timeout: float, output: str, left: tuple[ProcessId, ...]) -> None:
        beyond = f"; not permitted to end {', '.join(str(one.pid) for one in left)}" if left else ""
        said = f"; its last words: {end_of_output(output)}" if output.strip() else ""
        super().__init__(f"{program!r} took longer than {timeout:g} s and was ended{beyond}{said}")
        self.left = left


class Spawner:
    """Starts, runs and ends processes; each of its children is reaped as soon as it dies."""

    def __init__(self) -> None:
        require_linux()
        self._children = Children()
        self._launcher = ProcessStarter()
        self._running: set[int] = set()
        self._started: dict[int, _StartedChild] = {}

    @property
    def running(self) -> frozenset[int]:
        """The pids, which are the session ids too, of the commands that `run` is waiting for."""
        return frozenset(self._running)

    def reaps(self, pid: int) -> bool:
        """Whether this is a child that will be reaped here."""
        return pid in self._children

    def start(
        self,
        argv: Sequence[str],
        *,
        output: Path,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
    ) -> ProcessId:
        """Start a process in a session of its own, its output appended to a file; it outlives Pulse."""
        target = open_output(output)
        try:
            found = self._launcher.launch(argv, cwd=cwd, env=env or {}, output=target)
        finally:
            os.close(target)
        life = _StartedChild(found.started, (env or {}).get(EFFECT_MARK, ""), time.monotonic())
        self._adopt(found.pid).add_done_callback(life.end)
        self._started.pop(found.pid, None)  # so that the newest is last
        self._started[found.pid] = life
        if len(self._started) > REMEMBERED:
            del self._started[next(iter(self._started))]
        return found

    def ended(self, found: ProcessId) -> ProcessEnded | None:
        """How a process that was started here ended; None if it has not, or if that is no longer known."""
        code, life = self._children.exit_code(found.pid), self._started.get(found.pid)
        if code is None or life is None or life.started != found.started:
            return None
        return ProcessEnded(code, (life.ended or time.monotonic()) - life.began, life.effect)

    def end_of(self, found: ProcessId) -> str:
        """How a process that was started here ended, in words; empty if that is not known."""
        if (ended := self.ended(found)) is None:
            return ""
        if ended.code >= 0:
            return f"exited with status {ended.code}"
        return f"was killed by {signal.Signals(-ended.code).name}"

    def _adopt(self, pid: int) -> asyncio.Future[int]:
        try:
            return self._children.adopt(pid)
        except OSError as error:
            os.kill(pid, signal.SIGKILL)  # not reaped yet, so it is surely our child
            raise PulseError(f"cannot keep watch over a new process: {error.strerror}") from error

    async def run(
        self,
        argv: Sequence[str],
        *,
        timeout: float,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        marker: str = "",
        executable: str | None = None,
        log: Path | None = None,
    ) -> Outcome:
        """Run a command to its end; if it overruns or is cancelled, its whole tree is ended first.

        The output is captured and cut, or with `log` appended to that file, which a service that the command
        leaves behind can go on writing to. Processes left behind after a normal end are not ended.
        """
        began = time.monotonic()
        sink = FileOutput(log) if log else MemoryOutput()
        try:
            marked = {**(env or {}), **({EFFECT_MARK: marker} if marker else {})}
            found = self._launcher.launch(
                argv, cwd=cwd, env=marked, output=sink.target, executable=executable
            )
            sink.begin()
            exit_code = await self._wait(found, timeout, marker)
        finally:
            output = sink.end()
        if isinstance(exit_code, tuple):
            raise CommandTimedOut(argv[0], timeout, output, exit_code)
        return Outcome(exit_code, output, time.monotonic() - began)

    async def _wait(self, found: ProcessId, timeout: float, marker: str) -> int | tuple[ProcessId, ...]:
        """Wait for the exit code; after the timeout end the tree, and return its processes that could not be ended."""
        exited = self._adopt(found.pid)
        self._running.add(found.pid)
        try:
            await asyncio.wait([exited], timeout=timeout)
            if exited.done():
                return exited.result()
            return await _finish_despite_cancel(end_tree(found, marker))
        except asyncio.CancelledError:
            await _finish_despite_cancel(end_tree(found, marker))
            raise
        finally:
            self._running.discard(found.pid)

    async def end(self, found: ProcessId, *, soft: float) -> None:
        """SIGTERM to a process and the group it leads, a wait of `soft` seconds, then SIGKILL to its tree.

        After a soft end only the rest of its group is killed: a process that moved to a session of its own was
        meant to stay.
        """
        if found.pid == os.getpid():
            raise PulseError("Pulse does not end itself; use: upulse daemon stop")
        if (handle := _open_pidfd(found)) is None:
            return
        leads = (seen := read_stat(found.pid)) is not None and seen.group == found.pid != os.getpgrp()
        try:
            _terminate(found, handle, leads)
            ended = await _readable(handle, soft)
        except PermissionError as error:
            raise PulseError(f"process {found.pid} may not be ended by the user Pulse runs as") from error
        finally:
            os.close(handle)
        if not ended or (leads and any(one.group == found.pid for one in tree_members(found, ()))):
            await self._kill(found)

    async def _kill(self, found: ProcessId) -> None:
        if left := await _finish_despite_cancel(end_tree(found)):
            pids = ", ".join(str(one.pid) for one in left)
            raise PulseError(f"not permitted to end process {pids}; it belongs to another user")

    def close(self) -> None:
        """Stop waiting for all children; they live on."""
        self._children.close()


def _open_pidfd(found: ProcessId) -> int | None:
    """A pidfd of exactly this process, or None if it is gone."""
    try:
        handle = os.pidfd_open(found.pid)
    except ProcessLookupError:
        return None
    if is_alive(found):
        return handle
    os.close(handle)
    return None


def _terminate(found: ProcessId, handle: int, leads: bool) -> None:
    """Send one SIGTERM each: a second one makes many programs exit without cleanup. SIGCONT lets stopped ones handle it."""
    with suppress(ProcessLookupError):
        for number in (signal.SIGTERM, signal.SIGCONT):
            signal.pidfd_send_signal(handle, number if not leads else 0)
            if leads:
                os.killpg(found.pid, number)


async def _readable(handle: int, timeout: float) -> bool:
    """Whether this descriptor becomes readable in time; a pidfd does when its process is dead."""
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()
    loop.add_reader(handle, ready.set)
    try:
        async with asyncio.timeout(timeout):
            await ready.wait()
        return True
    except TimeoutError:
        return False
    finally:
        loop.remove_reader(handle)


async def _finish_despite_cancel(work: Coroutine[Any, Any, tuple[ProcessId, ...]]) -> tuple[ProcessId, ...]:
    """Finish this even if the caller is cancelled meanwhile, and pass the cancellation on afterwards."""
    task = asyncio.create_task(work, name="ending a process tree")
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled:
        raise cancelled
    return task.result()
