"""Starts processes that outlive Pulse, runs commands to their end, and ends processes."""

import asyncio
import logging
import os
import resource
import signal
import sys
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from typing import NamedTuple

from pulse_adapters.host.command_trees import CommandTrees
from pulse_adapters.host.launch import Birthplace, launch, start_failure, unwatched
from pulse_adapters.host.outputs import FileOutput, MemoryOutput, end_of_output, open_log
from pulse_adapters.host.unknown_children import UnknownChildren
from pulse_adapters.workers.environment import EFFECT_MARK, UNLOGGED_MARK, inherited_environment
from pulse_adapters.workers.file_threads import FileThreads
from pulse_adapters.workers.plain_file import open_plain
from pulse_adapters.workers.proc import open_pidfd, own_line, read_stat, ticks_now
from pulse_adapters.workers.process_threads import in_process_thread, in_start_thread
from pulse_adapters.workers.process_tree import (
    PATIENCE,
    SHARED,
    end_trees,
    in_trees,
)
from pulse_adapters.workers.spawn import (
    TRACED_S,
    ProcessAttributes,
    ProcessUser,
    ReachedProgram,
    reach_program,
)
from pulse_core.model.errors import PulseError
from pulse_core.model.text import signal_name
from pulse_core.ports.host import ProcessId
from pulse_core.ports.loops import finish_despite_cancel

LOG = logging.getLogger("pulse.host")
STATUS_WRITER = ("/bin/sh", "-c", 'trap : HUP INT QUIT TERM; "$@" 2>&1; s=$?; echo $s >&2; exit $s', "sh")
"""Runs a program and writes its exit status to where its own errors would go. It outlives signals that its group is sent
for as long as the program does: a trap of a shell, unlike a signal that is ignored, is not handed on."""
ENTERING = ("/bin/sh", "-c", '{ echo 0 >"$0"; } 2>/dev/null; exec "$@"')
"""Enters a control group, named next by its `cgroup.procs`, and becomes the program behind that."""
EXECUTING = ("/bin/sh", "-c", 'exec "$@"', "sh")
"""Becomes the program that is named next. Whoever owns a program may keep the kernel from opening it, by a lease, for 45 s:
who spawns it would wait as long, with all of the daemon."""
EXECUTING_AS = (
    sys.executable, "-I", "-S", "-c",
    "import os, signal, sys\n"
    "for one in (signal.SIGPIPE, signal.SIGXFSZ): signal.signal(one, signal.SIG_DFL)\n"
    "os.execv(sys.argv[1], sys.argv[2:])",
)  # fmt: skip
"""The same, with another first word than its path, which no shell can give everywhere."""
OUTPUT_READER, OUTPUT_READER_S = "/bin/cat", 1.0
"""Copies what a program prints to its file, of which the kernel lets it write so much and no more; and seconds that it has
for the rest when the program is over. It bears no mark, since it ends by itself once nobody is left who could print."""
REMEMBERED = 2_000
"""Ends of processes that are remembered: of those that die at once each is asked about only when all are dead."""
REAPED_S = 1.0
"""Seconds for which it is remembered whose a pid was: no kernel gives it to somebody else so soon."""


class Outcome(NamedTuple):
    """How a command ended: its exit code (negative: the signal), its output, seconds, and why its log lacks the output.

    found: the process that it was, which led a session.
    """

    exit: int
    output: str
    took: float
    unlogged: str
    found: ProcessId


class ProcessEnded(NamedTuple):
    """How a process that was started here has ended.

    code: its exit code, negative for a signal; lived: seconds; effect: the `PULSE_EFFECT` it was started with; at: when
    its end was noticed, in clock ticks after boot.
    """

    code: int
    lived: float
    effect: str
    at: int


class Asked(NamedTuple):
    """A process that was asked to end; ended: whether it has; leads: whether it led a group."""

    found: ProcessId
    ended: bool
    leads: bool


class _Child(NamedTuple):
    """A child that is waited for; began: in monotonic seconds; effect: None for a command, whose end nobody asks for."""

    found: ProcessId
    handle: int
    exited: asyncio.Future[int]
    began: float
    effect: str | None


class CommandTimedOut(PulseError):
    """A command was ended because it took too long; `left` are its processes that could not be ended."""

    def __init__(self, program: str, timeout: float, output: str, left: tuple[ProcessId, ...]) -> None:
        beyond = f"; not permitted to end {', '.join(str(one.pid) for one in left)}" if left else ""
        said = f"; its last words: {end_of_output(output)}" if output.strip() else ""
        super().__init__(f"{program!r} took longer than {timeout:g} s and was ended{beyond}{said}")
        self.left = left


class Spawner:
    """Starts, runs and ends processes; each of its children is reaped as soon as it dies: by its pidfd, without a thread.

    What it starts has this process's environment as it was when the spawner was made, less what is for the daemon alone.
    current: where a file lies now, if it was moved with the home; asked in threads.
    """

    def __init__(self, current: Callable[[Path], Path] = lambda path: path) -> None:
        self.current = current
        if signal.getsignal(signal.SIGCHLD) is signal.SIG_IGN:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # else the kernel throws exit codes away
        self._inherited = inherited_environment()
        self._children: dict[int, _Child] = {}
        self._ended: dict[ProcessId, ProcessEnded] = {}
        self._reaped: dict[int, tuple[str, float]] = {}
        self._asked: dict[ProcessId, bool] = {}
        self._readers: dict[ProcessId, asyncio.Future[int]] = {}
        self._launching = 0
        self._files = FileThreads()
        self.unknown = UnknownChildren(self.reaps)
        self.trees = CommandTrees(self.effect_of)

    @property
    def inherited(self) -> Mapping[str, str]:
        """The environment that all it starts have beside their own."""
        return self._inherited

    @property
    def running(self) -> frozenset[int]:
        """The pids, which are the session ids too, of the commands that `run` is waiting for."""
        return frozenset(pid for pid, child in self._children.items() if child.effect is None)

    def reaps(self, pid: int) -> bool:
        """Whether this is a child that will be reaped here."""
        return pid in self._children

    def effect_of(self, pid: int) -> str | None:
        """The effect of a child that will be or was just reaped here; None of any other process.

        It is empty for a command, and for a child that is only being started.
        """
        if child := self._children.get(pid):
            return child.effect or ""
        effect, at = self._reaped.get(pid, (None, 0.0))
        if time.monotonic() - at < REAPED_S:
            return effect
        is_being_launched = self._launching and (seen := read_stat(pid)) and seen.parent == os.getpid()
        return "" if is_being_launched else None

    def end_of_child(self, found: ProcessId) -> asyncio.Future[int] | None:
        """The end of a child that will be reaped here, for whoever waits for it; None of any other process."""
        child = self._children.get(found.pid)
        return child.exited if child and child.found == found else None

    async def start(
        self,
        argv: Sequence[str],
        *,
        output: Path,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        unlogged: Callable[[str], None] = LOG.warning,
        logged: Callable[[int], None] = lambda at: None,
        user: ProcessUser | None = None,
        attributes: ProcessAttributes | None = None,
        stdin: Path | None = None,
        inherits: bool = True,
        status: Path | None = None,
        output_limit: int = 0,
        birthplace: Birthplace | None = None,
    ) -> ProcessId:
        """Start a process in a session of its own, its output appended to a file; it outlives Pulse.

        unlogged: told why the output goes elsewhere, if that file can't be opened; logged: else, the byte of it at which the
        output begins; user: whom it runs as, if not as Pulse; attributes: what else it does not have of Pulse; stdin: the
        file that it reads, if any; inherits: else `env` is its whole environment; status: the file to which its exit status
        is written by whoever is started in its place; output_limit: bytes that it may print, 0 for any number: after one
        more its output is a broken pipe; birthplace: the control group that it is born in, if that is possible.
        """
        inherited = self._inherited if inherits else {}
        whole = {**inherited, **(user.environment if user else {}), **(env or {})}
        enters = bool(birthplace and birthplace.entrance)
        if user and attributes and attributes.gid is not None:
            user = user._replace(groups=(*user.groups, attributes.gid))
        program, is_of_others = await self._reach(argv[0], whole, cwd, bool(status or user) or enters, user)
        log = await open_log(self._files, output, self.current)
        with ExitStack() as opened:
            # To close it waits for a server, too.
            opened.callback(self._files.begin, str(output), partial(os.close, log.target), str(log.target))
            writing = reading = None
            if status:
                program, argv = STATUS_WRITER[0], (*STATUS_WRITER, program, *argv[1:])
                opened.callback(os.close, writing := open_plain(status, os.O_WRONLY))
            if birthplace and enters:
                argv = (*ENTERING, birthplace.entrance, *(argv if status else (program, *argv[1:])))
                program, birthplace = ENTERING[0], None
            if is_of_others and not status and not enters:
                program, argv = EXECUTING[0], (*EXECUTING, *argv)
            if stdin:
                opened.callback(os.close, reading := open_plain(stdin))
            target, reader = log.target, None
            if output_limit:
                source, target = os.pipe()
                opened.callback(os.close, source)
                opened.callback(os.close, target)
                reader = await self._start_reader(source, log.target, output_limit)
            if log.why:
                whole[UNLOGGED_MARK] = log.why
            start = partial(
                launch, program, argv, whole, target, cwd=cwd, user=user, attributes=attributes, stdin=reading,
                errors=writing, birthplace=birthplace,
            )  # fmt: skip
            found = (await self._launch((env or {}).get(EFFECT_MARK, ""), start)).found
        if reader:
            self._readers[found] = reader
        if log.why:
            unlogged(log.why)
        if log.path == output:
            logged(log.size)
        return found

    async def _launch(self, effect: str | None, start: Callable[[], ProcessId]) -> _Child:
        """Start a process in a thread, and wait for its end from then on; it is ended if the caller is cancelled meanwhile.

        effect: as of a child. Raises PulseError.
        """
        launched = list[_Child]()

        async def launch_and_adopt() -> None:
            self._launching += 1
            try:
                launched.append(self._adopt(await in_start_thread(start), effect))
            finally:
                self._launching -= 1

        try:
            await finish_despite_cancel(launch_and_adopt())
        except asyncio.CancelledError:
            await finish_despite_cancel(end_trees([one.found for one in launched]))
            raise
        return launched[0]

    async def _start_reader(self, source: int, log: int, limit: int) -> asyncio.Future[int]:
        """Start what copies an output; its end."""

        def start() -> ProcessId:
            reader = launch(OUTPUT_READER, (OUTPUT_READER,), {}, log, cwd=None, stdin=source)
            # Nobody reaps it meanwhile, so it is nobody else's number.
            resource.prlimit(reader.pid, resource.RLIMIT_CORE, (0, 0))  # which too large a file would leave
            resource.prlimit(reader.pid, resource.RLIMIT_FSIZE, (limit + 1, limit + 1))
            return reader

        return (await self._launch(None, start)).exited

    async def read_output(self, found: ProcessId) -> None:
        """Wait until the file has all that a process which is over has printed; what it left behind may print on."""
        if reader := self._readers.pop(found, None):
            await asyncio.wait([reader], timeout=OUTPUT_READER_S)

    async def _reach(
        self,
        program: str,
        env: Mapping[str, str],
        cwd: str | None,
        is_sure: bool = False,
        user: ProcessUser | None = None,
    ) -> ReachedProgram:
        """The program, when its file system and that of its working directory have answered. Raises PulseError.

        is_sure, user: as of `reach_program`.
        """
        try:
            about = program if cwd is None else f"{program!r} or {cwd!r}"
            return await self._files.ask(
                about, partial(reach_program, program, env, cwd, is_sure, user), env.get("PATH", "")
            )
        except (OSError, ValueError) as error:
            raise start_failure(program, cwd, error) from error

    def ended(self, found: ProcessId) -> ProcessEnded | None:
        """How a process that was started here ended; None if it has not, or if that is no longer known.

        Any thread may ask; only the loop's own one reaps, or whoever waits for the end would hear of it late.
        """
        child = self._children.get(found.pid)
        if child and child.found == found and _is_in(child.exited.get_loop()):
            self._reap(child)  # it may be dead already, and the loop not be told yet
        return self._ended.get(found)

    def note_end(self, found: ProcessId, is_killed: bool = False) -> None:
        """Remember that Pulse has this live process ended, and if so, that it kills it."""
        self._asked[found] = is_killed
        if len(self._asked) > REMEMBERED:
            del self._asked[next(iter(self._asked))]

    def has_ended(self, found: ProcessId) -> bool:
        """Whether Pulse had this process ended, or is at it."""
        return found in self._asked

    def has_killed(self, found: ProcessId) -> bool:
        """Whether Pulse killed it, since it had not ended in the time that it was given."""
        return self._asked.get(found, False)

    def end_of(self, found: ProcessId) -> str:
        """How a process that was started here ended, in words; empty if that is not known."""
        if (ended := self.ended(found)) is None:
            return ""
        if ended.code >= 0:
            return f"exited with status {ended.code}"
        return f"was killed by {signal_name(-ended.code)}"

    def _adopt(self, found: ProcessId, effect: str | None) -> _Child:
        """Wait for a new child, and reap it when it dies."""
        loop = asyncio.get_running_loop()
        with ExitStack() as opened:
            try:
                handle = os.pidfd_open(found.pid)
                opened.callback(os.close, handle)
                child = _Child(found, handle, loop.create_future(), time.monotonic(), effect)
                loop.add_reader(handle, self._died, child)
            except OSError as error:
                raise unwatched(found.pid, error) from error
            opened.pop_all()
        self._children[found.pid] = child
        return child

    def _died(self, child: _Child) -> None:
        """Reap it; if its tracer holds it, which is told first, look again later."""
        if self._children.get(child.found.pid) is child:
            self._reap(child)
        if self._children.get(child.found.pid) is child:
            loop = child.exited.get_loop()
            loop.remove_reader(child.handle)
            loop.call_later(TRACED_S, self._died, child)

    def _reap(self, child: _Child) -> None:
        try:
            ended = os.waitid(os.P_PID, child.found.pid, os.WEXITED | os.WNOHANG)
        except ChildProcessError:
            code = -1  # reaped by somebody else in this process
        else:
            if ended is None:
                return
            code = ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status
        self._release(child)
        if child.effect is not None:
            lived = time.monotonic() - child.began
            self._ended[child.found] = ProcessEnded(code, lived, child.effect, ticks_now())
            if len(self._ended) > REMEMBERED:
                del self._ended[next(iter(self._ended))]
        if not child.exited.done():
            child.exited.set_result(code)

    def _release(self, child: _Child) -> None:
        del self._children[pid := child.found.pid]
        self._reaped.pop(pid, None)  # so that the oldest stays the first
        self._reaped[pid] = child.effect or "", time.monotonic()
        if len(self._reaped) > REMEMBERED:
            del self._reaped[next(iter(self._reaped))]
        child.exited.get_loop().remove_reader(child.handle)
        os.close(child.handle)

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
        inherits: bool = True,
        user: ProcessUser | None = None,
    ) -> Outcome:
        """Run a command to its end; if it overruns or is cancelled, its whole tree is ended first.

        The output is captured and cut, or with `log` appended to that file, which a service that the command
        leaves behind can go on writing to. Processes left behind after a normal end are not ended. inherits and user: as in
        `start`.
        """
        began = time.monotonic()
        sink = FileOutput(await open_log(self._files, log, self.current)) if log else MemoryOutput()
        try:
            mark = {EFFECT_MARK: marker} if marker else {}
            marked = {**(user.environment if user else {}), **(env or {}), **mark}
            whole = {**self._inherited, **marked} if inherits else marked
            program, is_of_others = await self._reach(executable or argv[0], whole, cwd, bool(user), user)
            words = argv
            if is_of_others:
                words = (*EXECUTING_AS, program, *argv) if executable else (*EXECUTING, *argv)
                program = words[0]
            start = partial(launch, program, words, whole, sink.target, cwd=cwd, user=user)
            child = await self._launch(None, start)
            sink.begin()
            exit_code = await self._wait(child, timeout, marker)
        finally:
            output = await self._output(sink, log)
        if isinstance(exit_code, tuple):
            raise CommandTimedOut(argv[0], timeout, output, exit_code)
        return Outcome(exit_code, output, time.monotonic() - began, sink.why, child.found)

    async def _output(self, sink: FileOutput | MemoryOutput, log: Path | None) -> str:
        if log is None:
            return sink.end()
        try:
            return await self._files.ask(str(log), sink.end, str(sink.target))
        except TimeoutError as error:
            return f"[{error}]"

    async def _wait(self, child: _Child, timeout: float, marker: str) -> int | tuple[ProcessId, ...]:
        """Wait for the exit code; after the timeout end the tree, and return its processes that could not be ended."""
        found, exited = child.found, child.exited
        try:
            await asyncio.wait([exited], timeout=timeout)
            if exited.done():
                return exited.result()
            return await finish_despite_cancel(self.trees.end(found, exited, marker))
        except asyncio.CancelledError:
            await finish_despite_cancel(self.trees.end(found, exited, marker))
            raise

    async def end(
        self,
        found: ProcessId,
        *,
        soft: float,
        alone: bool = False,
        ask: signal.Signals = signal.SIGTERM,
    ) -> None:
        """As `ask_to_end` and `kill_rest`."""
        if asked := await self.ask_to_end(found, soft=soft, alone=alone, ask=ask):
            await kill_rest([asked])

    async def ask_to_end(
        self, found: ProcessId, *, soft: float, alone: bool, ask: signal.Signals
    ) -> Asked | None:
        """The signal `ask` to a process and the group it leads, and a wait of `soft` seconds; None if that is all.

        alone: nothing but the process itself is ended, after that time by SIGKILL.
        """
        if found.pid in own_line():
            raise PulseError(
                f"process {found.pid} is Pulse or runs it, and is not ended by it; use: upulse daemon stop"
            )
        if (handle := open_pidfd(found)) is None:
            return None
        self.note_end(found)
        try:
            seen = None if alone else read_stat(found.pid)
            leads = seen is not None and seen.group == found.pid != os.getpgrp()
            with suppress(ProcessLookupError):
                # One SIGTERM each: a second one makes many programs exit without cleanup. SIGCONT lets stopped ones
                # handle it.
                for number in (ask, signal.SIGCONT):
                    signal.pidfd_send_signal(handle, number if not leads else 0)
                    if leads:
                        os.killpg(found.pid, number)
            ended = await _readable(handle, soft)
            self.note_end(found, is_killed=not ended)
            if alone:
                with suppress(ProcessLookupError):
                    signal.pidfd_send_signal(handle, signal.SIGKILL)
                await _readable(handle, PATIENCE)
                return None
        except PermissionError as error:
            raise PulseError(f"process {found.pid} may not be ended by the user Pulse runs as") from error
        finally:
            os.close(handle)
        return Asked(found, ended, leads)

    def close(self) -> None:
        """Stop waiting for all children; they live on."""
        for child in list(self._children.values()):
            self._reap(child)
        for child in list(self._children.values()):
            self._release(child)
            child.exited.cancel()


async def kill_rest(asked: Collection[Asked]) -> None:
    """SIGKILL to the trees of those that have not ended. Raises PulseError if one may not be killed.

    After a soft end only the rest of its group is killed: a process that moved to a session of its own was meant to stay.
    All in one search: helpers may be thousands, and each search reads all processes.
    """
    now = await in_process_thread(SHARED.asked())
    ended = [one.found for one in asked if one.ended and one.leads]
    groups = {now[pid].group for pid in in_trees(ended)(now)}
    left = [one.found for one in asked if not one.ended or (one.leads and one.found.pid in groups)]
    if left and (denied := await finish_despite_cancel(end_trees(left))):
        pids = ", ".join(str(one.pid) for one in denied)
        raise PulseError(f"not permitted to end process {pids}; it belongs to another user")


def _is_in(loop: asyncio.AbstractEventLoop) -> bool:
    """Whether this thread runs the loop."""
    try:
        return asyncio.get_running_loop() is loop
    except RuntimeError:
        return False


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
