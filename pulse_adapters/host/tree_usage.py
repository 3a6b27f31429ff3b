"""What a tree of processes takes of the machine, as /proc tells it."""

import os
from collections.abc import Iterable

from pulse_adapters.workers.proc import TICKS_PER_SECOND, descendants, live_processes, read_proc_file
from pulse_core.ports.host import ProcessUsage, TreeUsage

PAGE = os.sysconf("SC_PAGE_SIZE")
_CPU, _THREADS = slice(11, 13), 17
"""Where a process's `stat` has its times and its threads, counted from after its name."""


def tree_usage(root: int) -> TreeUsage:
    """What a process and all that descends from it take now, oldest first; empty if it is gone."""
    now = {one.pid: one for one in live_processes()}
    members = descendants({root}, now) if root in now else ()
    return TreeUsage(tuple(_usages(sorted(members, key=lambda pid: (now[pid].started, pid)))))


def _usages(pids: Iterable[int]) -> Iterable[ProcessUsage]:
    for pid in pids:
        stat, statm = read_proc_file(f"/proc/{pid}/stat"), read_proc_file(f"/proc/{pid}/statm")
        if stat and statm:
            fields = stat[stat.rindex(b")") + 2 :].split()
            name = stat[stat.index(b"(") + 1 : stat.rindex(b")")].decode(errors="replace")
            cpu_us = sum(map(int, fields[_CPU])) * 1_000_000 // TICKS_PER_SECOND
            memory = int(statm.split()[1]) * PAGE
            yield ProcessUsage(pid, name, memory, cpu_us, int(fields[_THREADS]), _descriptors(pid))


def _descriptors(pid: int) -> int | None:
    try:
        return len(os.listdir(f"/proc/{pid}/fd"))
    except OSError:  # it is another user's, or gone
        return None
