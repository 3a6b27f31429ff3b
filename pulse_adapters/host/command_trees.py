"""Ends commands with all that came out of them, for little where that is nothing or few."""

import asyncio
import os
import signal
from collections.abc import Callable
from contextlib import suppress

from pulse_adapters.host.marked_processes import MarkedProcesses
from pulse_adapters.workers.environment import EFFECT_MARK
from pulse_adapters.workers.proc import ProcStat, children, is_alive, read_stat, send, start_time_of
from pulse_adapters.workers.process_tree import PATIENCE, end_tree
from pulse_core.ports.host import ProcessId

FEW = 8
"""Descendants that are looked for on the loop, a tenth of a millisecond each."""
FEW_THREADS = 100
"""Threads of each, of which every one is asked for its children."""
_LOOKS = 400
"""Looks at whether who was killed is dead, at most."""


class CommandTrees:
    """The trees of commands, each of which leads a session and bears the mark of an effect, if it has one.

    effect_of: the effect of a child that is or was just waited for, empty for a command; None of any other process. A full
    search reads all processes of the machine, and the environments of the younger ones, several times.
    """

    def __init__(self, effect_of: Callable[[int], str | None]) -> None:
        self._effect_of = effect_of
        self._marked = MarkedProcesses()

    async def end(self, main: ProcessId, exited: "asyncio.Future[int]", marker: str) -> tuple[ProcessId, ...]:
        """End a command, of which `exited` is the end; returns those of its processes that this user may not signal."""
        killed = _kill_few(main) if not exited.done() else []
        if killed:
            await asyncio.wait([exited], timeout=PATIENCE / _LOOKS)
            for _ in range(_LOOKS):
                if not any(map(_will_end, killed)):
                    break
                await asyncio.sleep(PATIENCE / _LOOKS)
            if not is_alive(main):
                await asyncio.wait([exited], timeout=PATIENCE)
        if exited.done():
            return await self.end_left(main, marker)
        return await end_tree(main, _mark(marker))

    async def end_left(self, main: ProcessId, marker: str) -> tuple[ProcessId, ...]:
        """The same of what a command that is over has left; if that is nothing, it costs a listing of /proc."""

        def may_be(pid: int, effect: str) -> bool:
            # Of a crowd, each would search on for as long as any other one begins or ends. What this one has left is no
            # child of the daemon's.
            return effect in ("", marker) and self._effect_of(pid) is None

        if await self._marked.finds(lambda: self._has_left(main, marker), may_be):
            return await end_tree(main, _mark(marker))
        return ()

    def _has_left(self, main: ProcessId, marker: str) -> bool:
        return any(
            marker and one.effect == marker and one.found.started >= main.started
            for one in self._marked.bearers()
        ) or any(start_time_of(pid) is not None for pid in self._marked.in_sessions({main.pid}))


def _mark(marker: str) -> str:
    return f"{EFFECT_MARK}={marker}" if marker else ""


def _kill_few(main: ProcessId) -> list[ProcessId]:
    """SIGKILL to a child that leads a session, its group and its descendants; none if they are many, or one may not be."""
    line, first = dict[int, ProcStat](), read_stat(main.pid)
    ahead = [first] if first else []
    try:
        while ahead:
            if (parent := ahead.pop()).threads > FEW_THREADS:
                return []
            born = children(parent.pid) - line.keys()
            if len(line) + len(born) > FEW:  # before they are read: they may be thousands
                return []
            for pid in born:
                # Its number may be somebody else's by now.
                if (seen := read_stat(pid)) and seen.parent == parent.pid:
                    line[pid] = seen
                    ahead.append(seen)
        # Before any is killed: whose parent is gone is not found, and not told of.
        for pid in (main.pid, *line):
            os.kill(pid, 0)
        with suppress(ProcessLookupError):
            os.killpg(main.pid, signal.SIGKILL)
        killed = [main, *(seen.found for seen in line.values())]
        return killed if all(send(one, signal.SIGKILL) for one in killed) else []
    except OSError:  # one may not be signalled, or is gone, or no descriptor is to be had
        return []


def _will_end(killed: ProcessId) -> bool:
    """Whether it is about to end; who sleeps uninterruptibly, as on a file system that does not answer, may never."""
    seen = read_stat(killed.pid)
    return seen is not None and seen.found == killed and seen.alive and seen.state != "D"
