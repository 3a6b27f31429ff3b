"""Ends processes with all their descendants. Blocks: the daemon calls it in a thread."""

import os
import signal
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress

from pulse_adapters.workers.environment import HANDS_MARK
from pulse_adapters.workers.proc import ProcStat, descendants, environment, has_marker, pids, read_stat, send
from pulse_core.ports import ProcessId

PATIENCE = 2.0
"""Seconds after which what is not dead is left: it sleeps uninterruptibly, or belongs to somebody else."""
_PAUSE = 0.005
_MARKED = f"\0{HANDS_MARK}=".encode()


Table = Mapping[int, ProcStat]
Chosen = Callable[[Table], Iterable[int]]


def live_process_table() -> Table:
    """All processes that are alive."""
    return {pid: one for pid in pids() if (one := read_stat(pid)) and one.alive}


def kill_processes(chosen: Chosen, patience: float = PATIENCE) -> bool:
    """Kill the chosen processes, their descendants, and those started meanwhile; whether nothing is left."""
    until = time.monotonic() + patience
    known: set[ProcessId] = set()
    quiet = 0
    while quiet < 2:  # what is just being executed shows no mark: only the second empty search is believed
        left = _left(chosen, known)
        known |= {one.found for one in left}
        for one in left:
            with suppress(OSError):
                send(one.found, signal.SIGKILL)
        quiet = 0 if left else quiet + 1
        if left and time.monotonic() > until:
            return False
        if quiet < 2:
            time.sleep(_PAUSE)
    return True


def in_session(session: int) -> Chosen:
    """Choose the processes of a session."""
    return lambda now: [one.pid for one in now.values() if one.session == session]


def marked(mark: str) -> Chosen:
    """Choose the processes with a mark, `NAME=VALUE`, in their environment."""
    name, _, value = mark.partition("=")
    return lambda now: [pid for pid in now if has_marker(pid, value, name)]


def session_or_marked(session: int, mark: str) -> Chosen:
    """Choose the processes of a session, and those with a mark, which may have left the session."""
    staying, bearing = in_session(session), marked(mark)
    return lambda now: [*staying(now), *bearing(now)]


def orphans_of_user(uid: int) -> Chosen:
    """Choose a user's orphans: processes whose parents are gone and that have removed their mark.

    What bears any mark may be a service of another revision, or of another home. Where the first process of the machine
    (a container's) is of our kind, orphans can't be told from its children, and go with it.
    """

    def chosen(now: Table) -> Iterable[int]:
        theirs = {pid for pid in now if _uid(pid) == uid} if not _is_ours(1) else set()
        return [pid for pid in theirs if _answers(pid, theirs, now) == 1 and _MARKED not in environment(pid)]

    return chosen


def either_of(one: Chosen, other: Chosen) -> Chosen:
    """Choose what either of two choices chooses."""
    return lambda now: [*one(now), *other(now)]


def _answers(pid: int, theirs: Collection[int], now: Table) -> int:
    """The next process above that is not one of theirs."""
    while pid in theirs:
        pid = now[pid].parent
    return pid


def _left(chosen: Chosen, known: set[ProcessId]) -> set[ProcStat]:
    now = live_process_table()
    found = {pid for pid in chosen(now) if pid in now} | {
        one.pid for one in now.values() if one.found in known
    }
    return {now[pid] for pid in descendants(found, now) if pid != os.getpid()}


def _uid(pid: int) -> int | None:
    try:
        with open(f"/proc/{pid}/status", "rb") as told:
            return next((int(line.split()[1]) for line in told if line.startswith(b"Uid:")), None)
    except OSError:
        return None


def _is_ours(pid: int) -> bool:
    try:
        return os.path.samefile(f"/proc/{pid}/exe", "/proc/self/exe")
    except OSError:
        return False
