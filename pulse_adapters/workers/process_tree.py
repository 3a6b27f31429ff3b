"""Ends processes with all their descendants."""

import asyncio
import os
import signal
import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from itertools import count

from pulse_adapters.workers.environment import HANDS_MARK
from pulse_adapters.workers.proc import (
    ProcStat,
    descendants,
    environments,
    is_of_user,
    live_processes,
    own_line,
    send,
    ticks_now,
    with_marker,
)
from pulse_adapters.workers.process_threads import in_process_thread
from pulse_core.model.backoff import Backoff
from pulse_core.ports.host import ProcessId
from pulse_core.ports.loops import finish_despite_cancel

PATIENCE = 2.0
"""Seconds after which what is not dead is left: it sleeps uninterruptibly, or belongs to somebody else."""
SURE = 2
"""Searches in a row that find nothing before that is believed: what is just being executed shows no mark."""
_PAUSE, _PAUSES = 0.005, Backoff(0.001, 0.05)
_MARKED = f"\0{HANDS_MARK}=".encode()


Table = Mapping[int, ProcStat]
Chosen = Callable[[Table], Iterable[int]]


def live_process_table() -> Table:
    """All live processes but this one, which is never one of those to be ended; nor is what only descends from it."""
    return {one.pid: one for one in live_processes()}


class SharedTable:
    """The process table, which takes milliseconds: read once for all who wait for it, in threads.

    Whoever asks gets one of which the reading began afterwards, so that what it shows as gone was gone by then.
    """

    def __init__(self) -> None:
        self._lock, self._begun = threading.Lock(), 0
        self._table: Table | None = None

    def asked(self) -> Callable[[], Table]:
        """What is to be called in a thread for a table that is newer than this moment."""
        begun = self._begun

        def read() -> Table:
            with self._lock:
                if self._table is None or self._begun == begun:
                    self._begun, self._table = self._begun + 1, None
                    self._table = live_process_table()
                return self._table

        return read


SHARED = SharedTable()


class TreeKiller:
    """Kills the chosen processes, their descendants, and those started meanwhile, round by round.

    groups: are signalled as wholes, so that no member can escape by a fork. known: all that were found; denied: those
    of them that this user may not signal.
    """

    def __init__(self, chosen: Chosen, groups: Collection[int] = ()) -> None:
        self._chosen, self._groups = chosen, frozenset(groups)
        self.known: set[ProcessId] = set()
        self.denied: set[ProcessId] = set()

    def round(self, now: Table) -> list[ProcStat]:
        """Kill those that are alive in this table; returns them."""
        found = {pid for pid in self._chosen(now) if pid in now and pid > 1}  # all descends from the first
        found |= {one.pid for one in now.values() if one.found in self.known}
        left = [now[pid] for pid in descendants(found, now)]
        self.known.update(one.found for one in left)
        for group in self._groups.intersection(one.group for one in left):
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(group, signal.SIGKILL)
        for one in left:
            with suppress(OSError):  # no descriptor is to be had, or the like: the next round tries again
                if not send(one.found, signal.SIGKILL):
                    self.denied.add(one.found)
        return left

    def search(self, asked: Callable[[], Table]) -> list[ProcStat]:
        """A round, with the table that was asked for."""
        return self.round(asked())


def kill_processes(chosen: Chosen, patience: float = PATIENCE) -> bool:
    """Kill the chosen processes with all that comes out of them; whether nothing is left. Blocks: for threads."""
    until = time.monotonic() + patience
    killer, quiet = TreeKiller(chosen), 0
    while quiet < SURE:
        left = killer.round(live_process_table())
        quiet = 0 if left else quiet + 1
        if left and time.monotonic() > until:
            return False
        if quiet < SURE:
            time.sleep(_PAUSE)
    return True


async def end_tree(root: ProcessId, mark: str = "") -> tuple[ProcessId, ...]:
    """Kill a process, its group, session, descendants and bearers of the mark (`NAME=VALUE`), until none is left.

    Returns those that this user may not signal.
    """
    return await end_chosen(in_tree(root, mark), {root.pid} - {os.getpgrp()}, SURE if mark else 1)


async def end_trees(roots: Collection[ProcessId]) -> tuple[ProcessId, ...]:
    """As `end_tree` for each of these, without marks, in one search for all."""
    return await end_chosen(in_trees(roots), {one.pid for one in roots} - {os.getpgrp()}, sure=1)


async def end_chosen(chosen: Chosen, groups: Collection[int] = (), sure: int = SURE) -> tuple[ProcessId, ...]:
    """Kill the chosen processes with all that comes out of them, until `sure` searches in a row find none.

    Returns those that this user may not signal. A process in uninterruptible sleep with SIGKILL pending counts
    as ended: it will never run another instruction of its own. Both the choice and the kill are made in a thread.
    """
    killer, quiet = TreeKiller(chosen, groups), 0
    for rounds in count(1):
        killed = set(killer.known)
        # On the loop, each of many trees that end at once would hold up all else for as long as its own search.
        found = await finish_despite_cancel(in_process_thread(killer.search, SHARED.asked()))
        left = [one.found for one in found if one.state != "D" or one.found not in killed]
        quiet = quiet + 1 if killer.denied.issuperset(left) else 0
        if quiet == sure:
            break
        await asyncio.sleep(0.02 if quiet else _PAUSES.after(rounds))
    return tuple(killer.denied)


def in_tree(root: ProcessId, mark: str = "", died: int | None = None) -> Chosen:
    """Choose a process, its group and session, and the younger bearers of a mark, if one is given.

    died: when it was dead at the latest, in clock ticks after boot; None: it lives, or did until just now. A number in use
    as a group or session is never given out again, but one that was empty meanwhile may be a stranger's. So its members
    are the process's own if it leads them still, or one of them was there before it died, bears the mark, or was its own
    at an earlier search.
    """
    # All descends from 1, and 0 is the group and session of whatever has none that is seen from here.
    if root.pid in own_line() - {os.getpid()}:
        raise ValueError(f"process {root.pid} leads no tree that may be ended")
    before, own = ticks_now() if died is None else died, set[ProcessId]()

    def chosen(now: Table) -> Iterable[int]:
        bearers = set[int]()
        if mark:
            bearers.update(
                marked(mark)({pid: one for pid, one in now.items() if one.started >= root.started})
            )
        yield from bearers
        holder = now.get(root.pid)
        if holder is not None and holder.found == root:
            yield root.pid
        elif holder is not None:
            return
        if root.pid in (os.getpgrp(), os.getsid(0)):
            return
        there = {pid: one for pid, one in now.items() if root.pid in (one.group, one.session)}
        members = {pid: one for pid, one in there.items() if one.started >= root.started}
        if holder or any(
            pid in bearers or one.started <= before or one.found in own for pid, one in members.items()
        ):
            own.update(one.found for one in members.values())
            yield from members

    return chosen


def in_trees(roots: Iterable[ProcessId]) -> Chosen:
    """Choose what `in_tree` does for each of these without a mark; each process is looked at once, however many they are."""
    trees = {root.pid: in_tree(root) for root in roots}

    def chosen(now: Table) -> Iterable[int]:
        there: dict[int, dict[int, ProcStat]] = {}
        for pid, one in now.items():
            for number in trees.keys() & {pid, one.group, one.session}:
                there.setdefault(number, {})[pid] = one
        return [pid for number, near in there.items() for pid in trees[number](near)]

    return chosen


def in_session(session: int) -> Chosen:
    """Choose the processes of a session."""
    return lambda now: [one.pid for one in now.values() if one.session == session]


def marked(mark: str) -> Chosen:
    """Choose the processes with a mark, `NAME=VALUE`, in their environment."""
    name, _, value = mark.partition("=")
    return lambda now: with_marker(now, value, name)


def of_user(uid: int) -> Chosen:
    """Choose the processes of a user, also those that somebody else has begun with its rights."""
    return lambda now: [pid for pid in now if is_of_user(pid, uid)]


def orphans_of_user(uid: int) -> Chosen:
    """Choose a user's orphans: processes whose parents are gone and that have removed their mark.

    What bears any mark may be a service of another revision, or of another home. Where the first process of the machine
    (a container's) is of our kind, orphans can't be told from its children, and go with it.
    """

    def chosen(now: Table) -> Iterable[int]:
        theirs = set(of_user(uid)(now)) if not _is_ours(1) else set()
        orphans = [pid for pid in theirs if _answers(pid, theirs, now) == 1]
        return [pid for pid, raw in environments(orphans) if _MARKED not in (raw or b"")]

    return chosen


def any_of(*choices: Chosen) -> Chosen:
    """Choose what any of these choices chooses."""
    return lambda now: [pid for choice in choices for pid in choice(now)]


def _answers(pid: int, theirs: Collection[int], now: Table) -> int:
    """The next process above that is not one of theirs."""
    while pid in theirs:
        pid = now[pid].parent
    return pid


def _is_ours(pid: int) -> bool:
    try:
        return os.path.samefile(f"/proc/{pid}/exe", "/proc/self/exe")
    except OSError:
        return False
