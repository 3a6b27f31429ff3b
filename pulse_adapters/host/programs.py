"""Programs that outlive the daemon: started, found again, looked at, and ended with all that came out of them."""

import asyncio
import errno
import os
import signal
from collections.abc import Callable, Collection, Iterable, Sequence, Set
from contextlib import nullcontext, suppress
from pathlib import Path

from pulse_adapters.host.life_groups import LifeGroups
from pulse_adapters.host.lives import MOMENT_S
from pulse_adapters.host.marked_processes import MarkedProcesses, bearer_of, find_bearers, variable_in
from pulse_adapters.host.spawner import STATUS_WRITER, Spawner
from pulse_adapters.workers.control_group import GroupLimits, life_members
from pulse_adapters.workers.descriptor_share import are_descriptors_scarce
from pulse_adapters.workers.environment import EFFECT_MARK
from pulse_adapters.workers.proc import (
    TICKS_PER_SECOND,
    arguments,
    descendants,
    environment,
    is_alive,
    live_processes,
    open_pidfd,
    read_proc_file,
    send,
    session_of,
    ticks_now,
    uid_of,
)
from pulse_adapters.workers.process_tree import SHARED, Table, end_chosen, in_tree, live_process_table
from pulse_adapters.workers.users import find_user, process_user
from pulse_core.model.errors import PulseError
from pulse_core.ports.host import Life, ProcessId
from pulse_core.ports.loops import finish_despite_cancel
from pulse_core.ports.programs import OrphanProgram, ProgramObservation, ProgramSpec

PAGE = os.sysconf("SC_PAGE_SIZE")
_STATUS_WRITER = "\0".join(STATUS_WRITER).encode()


class LifePrograms:
    """Implements `pulse_core.ports.Programs` with what guards processes."""

    def __init__(self, spawner: Spawner, groups: LifeGroups | None = None) -> None:
        self._spawner, self._groups = spawner, groups
        self._calls: list[Callable[[], None]] = []
        self._held: dict[ProcessId, int] = {}

    async def start(self, effect: str, program: ProgramSpec) -> ProcessId:
        """Start it, if that leaves room for callers and for survival."""
        if are_descriptors_scarce(shares=2):
            raise PulseError(f"{os.strerror(errno.EMFILE)} in the daemon; give it a larger limit (ulimit -n)")
        limits = GroupLimits(program.processes or None, program.memory or None, program.cpu_weight or None)
        user = process_user(program.user)
        place = self._groups.birthplace(effect, limits, may_enter=not user) if self._groups else nullcontext()
        async with place as birthplace:
            main = await self._spawner.start(
                program.argv,
                cwd=program.cwd,
                env={**program.env, EFFECT_MARK: effect},
                output=Path(program.output),
                stdin=None if program.stdin == os.devnull else Path(program.stdin),
                user=user,
                inherits=False,
                status=Path(program.status) if program.status else None,
                output_limit=program.output_limit,
                birthplace=birthplace,
            )
        if self._groups:
            begin = self._groups.begin
            asyncio.get_running_loop().call_later(MOMENT_S, begin, Life(effect, main), limits)
        return main

    async def limits_fault(self) -> str:
        """Why limits have no effect here."""
        return await asyncio.to_thread(self._groups.fault) if self._groups else "no control groups are made"

    async def find(self, effect: str) -> ProcessId | None:
        """Who leads the session of those that bear the mark."""
        found = await find_bearers(effect=effect)
        return next((one for one in found if session_of(one.pid) == one.pid), None)

    def effects_of(self, pid: int) -> Set[str]:
        """What its mark and its control groups say, read once for all: callers of the socket are asked on the loop."""
        bearer = bearer_of(pid)
        return {*((bearer.effect,) if bearer else ()), *(self._groups.holding(pid) if self._groups else ())}

    async def look(self, main: ProcessId) -> ProgramObservation:
        """How it is now."""
        if not is_alive(main):
            await self._spawner.read_output(main)
            ended = self._spawner.ended(main)
            return ProgramObservation(False, ended.code if ended else None)
        return await asyncio.to_thread(_observation, main)

    async def pause(self, effect: str, main: ProcessId, over: bool = False) -> None:
        """Hold all that came out of it, or have it go on; who forked meanwhile is found by the next search."""
        number, seen = signal.SIGCONT if over else signal.SIGSTOP, set[ProcessId]()
        while is_alive(main):
            # Beside the loop: to read all processes and their marks takes tens of milliseconds.
            there = await finish_despite_cancel(asyncio.to_thread(_tree_of, effect, main, SHARED.asked()))
            if not (found := there - seen):
                return
            seen |= found
            for one in found:
                send(one, number)

    async def stop(self, effect: str, main: ProcessId, soft: float) -> None:
        """End all that came out of it."""
        try:
            await self._spawner.end(main, soft=soft)
        finally:
            if self._groups:
                await finish_despite_cancel(asyncio.to_thread(self._groups.end, effect))
            await finish_despite_cancel(
                end_chosen(in_tree(main, f"{EFFECT_MARK}={effect}", self._death(main)))
            )

    async def orphans(self, home: str, users: Collection[str]) -> Sequence[OrphanProgram]:
        """Who bears the marks of an agent of this home."""
        return await asyncio.to_thread(_orphans, home, users)

    def _death(self, main: ProcessId) -> int | None:
        """When it was dead at the latest, in clock ticks after boot; None while it lives, or if it ended just now."""
        if is_alive(main) or self._spawner.reaps(main.pid):
            return None
        return ended.at if (ended := self._spawner.ended(main)) else main.started

    def listen(self, call: Callable[[], None]) -> None:
        """Call this whenever `watch` says so."""
        self._calls.append(call)

    def watch(self, main: ProcessId) -> None:
        """Tell who listens: now, and when it ends."""
        if main not in self._held and (handle := open_pidfd(main)) is not None:
            self._held[main] = handle
            asyncio.get_running_loop().add_reader(handle, self._ended, main)
        self._tell()

    def _ended(self, main: ProcessId) -> None:
        self._release(main)
        asyncio.get_running_loop().call_soon(
            self._tell
        )  # once the spawner has reaped it and knows its exit code

    def _release(self, main: ProcessId) -> None:
        handle = self._held.pop(main)
        asyncio.get_running_loop().remove_reader(handle)
        os.close(handle)

    def _tell(self) -> None:
        for call in self._calls:
            call()

    def close(self) -> None:
        """Let go of the programs; they live on."""
        for main in list(self._held):
            with suppress(RuntimeError):  # the loop is closed
                self._release(main)


def _observation(main: ProcessId) -> ProgramObservation:
    session = [one for one in live_processes() if one.session == main.pid]
    members, program = [one.pid for one in session], main.pid
    if arguments(main.pid).startswith(_STATUS_WRITER):
        program = next((one.pid for one in session if one.parent == main.pid), main.pid)
    ticks = sum(int(part) for pid in members for part in _stat_fields(pid)[11:15])  # its dead children's, too
    cpu_us = ticks * 1_000_000 // TICKS_PER_SECOND
    return ProgramObservation(True, None, _memory(members), len(members), cpu_us, program)


def _memory(pids: Iterable[int]) -> int:
    pages = [(read_proc_file(f"/proc/{pid}/statm") or b"").split() for pid in pids]
    return sum(int(fields[1]) for fields in pages if len(fields) > 1) * PAGE


def _stat_fields(pid: int) -> list[bytes]:
    """What the kernel says of a process after its name; nothing if it is gone."""
    raw = read_proc_file(f"/proc/{pid}/stat")
    return raw[raw.rindex(b")") + 2 :].split() if raw else []


def _tree_of(effect: str, main: ProcessId, asked: Callable[[], Table]) -> set[ProcessId]:
    """All that came out of it, of the table that was asked for. Blocks: for threads."""
    now = asked()
    chosen = set(in_tree(main, f"{EFFECT_MARK}={effect}")(now))
    return {now[pid].found for pid in descendants(chosen, now)}


def _orphans(home: str, users: Collection[str]) -> Sequence[OrphanProgram]:
    marked, found, uids = (
        MarkedProcesses(),
        list[OrphanProgram](),
        {os.geteuid()} if "" in users else set[int](),
    )
    for name in filter(None, users):
        with suppress(PulseError):
            uids |= {user.uid} if (user := find_user(name)) else set()
    marked.search()
    in_groups, now = life_members(home), live_process_table()
    effects = {one.found.pid: one.effect for one in marked.bearers() if not one.name} | in_groups
    for pid, effect in effects.items():
        seen, raw = now.get(pid), environment(pid)
        agent, terminal = variable_in(raw, "PULSE_AGENT"), _stat_fields(pid)[4:5]
        is_of_home = pid in in_groups or (agent and variable_in(raw, "UPULSE_HOME") == home)
        if seen is None or not is_of_home:
            continue
        # Mark and group are inherited: whose parent has neither has lost the one that it came from.
        if effects.get(seen.parent) != effect and terminal == [b"0"] and uid_of(pid) in uids:
            age_us = (ticks_now() - seen.started) * 1_000_000 // TICKS_PER_SECOND
            memory = _memory(descendants({pid}, now))
            found.append(OrphanProgram(*seen.found, effect, agent, age_us, memory))
    return found
