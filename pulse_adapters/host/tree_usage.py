"""What trees of processes take of the machine, as /proc tells it."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

from pulse_adapters.workers.proc import OFFSET_TICKS, TICKS_PER_SECOND, children, read_proc_file
from pulse_adapters.workers.process_access import as_its_user
from pulse_adapters.workers.process_memory import other_thread
from pulse_core.ports.host import ProcessId, ProcessUsage, TreeUsage

PAGE = os.sysconf("SC_PAGE_SIZE")
MOST_PROCESSES = 10_000
"""Of one tree: of those in it that fork without end, so many are counted."""
_CPU, _THREADS, _STARTED = slice(11, 13), 17, 19
"""Where a process's `stat` has its times, its threads and its start, counted from after its name."""


def tree_usage(root: int) -> TreeUsage:
    """What a process and all that descends from it take now, oldest first; empty if it is gone."""
    found = (one for pid in tree_pids(root) if (one := process_usage(pid)))
    return TreeUsage(tuple(sorted(found, key=lambda one: (one.started, one.pid))))


def tree_pids(root: int, more: Iterable[int] = ()) -> Iterator[int]:
    """The pids of a process, of others that belong to it, and of all that descends from them, each once."""
    known = {root, *more}
    ahead = list(known)
    while ahead and len(known) <= MOST_PROCESSES:
        yield (pid := ahead.pop())
        born = children(pid) - known
        known |= born
        ahead += born


def process_usage(pid: int) -> ProcessUsage | None:
    """What one process takes; None if it is dead. A zombie takes nothing any more."""
    stat = read_proc_file(f"/proc/{pid}/stat")
    fields = stat[stat.rindex(b")") + 2 :].split() if stat else []
    shown = _shown(pid, fields[0]) if fields else ""
    if not stat or not (statm := read_proc_file(f"/proc/{shown}/statm")):
        return None
    name = stat[stat.index(b"(") + 1 : stat.rindex(b")")].decode(errors="replace")
    cpu_us = sum(map(int, fields[_CPU])) * 1_000_000 // TICKS_PER_SECOND
    memory, threads = int(statm.split()[1]) * PAGE, int(fields[_THREADS])
    started = int(fields[_STARTED]) - OFFSET_TICKS
    return ProcessUsage(pid, name, memory, cpu_us, threads, _descriptors(shown), started)


def _shown(pid: int, state: bytes) -> str:
    """Which folder of /proc shows what a process takes: another thread's if its first one has ended; empty if all have."""
    return other_thread(pid) if state in b"ZXx" else str(pid)


def _descriptors(pid: str) -> int | None:
    path = f"/proc/{pid}/fd"
    try:
        with as_its_user(pid):
            return os.stat(path).st_size or len(os.listdir(path))  # before Linux 6.2 its size is 0
    except OSError:  # it is another user's, or gone
        return None


def shared_once(pids: Iterable[int]) -> int | None:
    """Bytes of memory of these processes, what they share counted once; None if the kernel does not tell it."""
    whole = 0
    for pid in pids:
        with as_its_user(pid):
            told = read_proc_file(f"/proc/{pid}/smaps_rollup")
            told = told or read_proc_file(f"/proc/{other_thread(pid)}/smaps_rollup") or b""
        sizes = [line.split()[1] for line in told.splitlines() if line.startswith(b"Pss:")]
        if not sizes:
            return None
        whole += int(sizes[0]) * 1024
    return whole


class CpuMeter:
    """How many cores the trees have used since they were last measured. now: seconds."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._before: Mapping[str, _CpuTimes] = {}
        self._coming: dict[str, _CpuTimes] = {}

    def cores(self, name: str, processes: Iterable[ProcessUsage]) -> float | None:
        """Cores, as 1.5; None at the first measurement of this tree."""
        now, times = self._now(), {ProcessId(one.pid, one.started): one.cpu_us for one in processes}
        before, self._coming[name] = self._before.get(name), _CpuTimes(now, times)
        if before is None or now <= before.at or not times.keys() & before.of.keys():
            return None
        used = sum(max(0, spent - before.of.get(one, 0)) for one, spent in times.items())
        return round(used / 1e6 / (now - before.at), 4)

    def forget_others(self) -> None:
        """Forget the trees that were not measured since this was last called."""
        self._before, self._coming = self._coming, {}


class _CpuTimes(NamedTuple):
    at: float
    of: Mapping[ProcessId, int]
