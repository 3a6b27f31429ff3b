"""CPU and memory use of the daemon's own child processes."""

import os
import time
from collections.abc import Iterator, Mapping
from typing import Any

OURS = ("pulse_adapters.", "upulse_cli.")
TICKS_PER_SECOND, PAGE = os.sysconf("SC_CLK_TCK"), os.sysconf("SC_PAGE_SIZE")
Told = Mapping[str, Any]


def child_costs(daemon: int) -> Iterator[Told]:
    """The daemon's own child processes: the share of a core that each used since its start, its memory (bytes)."""
    for pid in child_pids(daemon):
        words = read_file(pid, "cmdline").split("\0")
        module = words[words.index("-m") + 1] if "-m" in words[:-1] else ""
        fields = read_file(pid, "stat").rpartition(") ")[2].split()
        if module.startswith(OURS) and len(fields) > 21:
            cpu, began = int(fields[11]) + int(fields[12]), int(fields[19])
            lived = time.clock_gettime(time.CLOCK_BOOTTIME) - began / TICKS_PER_SECOND
            share = cpu / TICKS_PER_SECOND / max(lived, 1.0)
            yield {"module": module, "pid": pid, "cpu": share, "rss": int(fields[21]) * PAGE}


def child_pids(pid: int) -> list[int]:
    """The pids of the children of all threads of this process."""
    try:
        threads = os.listdir(f"/proc/{pid}/task")
    except OSError:
        return []
    return sorted(
        int(word) for thread in threads for word in read_file(pid, f"task/{thread}/children").split()
    )


def read_file(pid: int, file: str) -> str:
    """A file of a process in /proc; empty if the process is gone."""
    try:
        with open(f"/proc/{pid}/{file}", encoding="utf-8", errors="replace") as found:
            return found.read()
    except OSError:
        return ""
