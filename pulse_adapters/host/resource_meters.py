"""CPU, memory and load of the machine, of the daemon, and of its child processes."""

import time
from collections.abc import Iterator, Mapping
from typing import Any

import psutil

from pulse_core.model.json_types import Json

OURS = ("pulse_adapters.", "upulse_cli.")


class ResourceMeter:
    """Reads what the machine and this process use; of CPU time, what was used since the last reading."""

    def __init__(self) -> None:
        psutil.cpu_percent(percpu=True)
        self._own = psutil.Process()
        self._last = time.monotonic(), time.process_time()

    def read(self) -> dict[str, Json]:
        """Shares from 0 to 1 and bytes. What memory can be reclaimed is available; `self_cpu` is of one core."""
        cpus = [percent / 100 for percent in psutil.cpu_percent(percpu=True)] or [0.0]
        (then, spent), self._last = self._last, (time.monotonic(), time.process_time())
        now, spent_now = self._last
        memory, swap = psutil.virtual_memory(), psutil.swap_memory()
        one, five, fifteen = psutil.getloadavg()
        return {
            "cpu": round(sum(cpus) / len(cpus), 4),
            "cpu_max": round(max(cpus), 4),
            "memory": round(1 - memory.available / memory.total, 5),
            "memory_available": memory.available,
            "memory_total": memory.total,
            "swap": round(swap.percent / 100, 5),
            "swap_total": swap.total,
            "load1": round(one, 2),
            "load5": round(five, 2),
            "load15": round(fifteen, 2),
            "self_cpu": round((spent_now - spent) / (now - then), 5) if now > then else 0.0,
            "self_rss": self._own.memory_info().rss,
        }


def child_costs(daemon: int) -> Iterator[Mapping[str, Any]]:
    """The daemon's own child processes: the share of a core that each used since its start, its memory (bytes)."""
    try:
        children = psutil.Process(daemon).children()
    except psutil.NoSuchProcess:
        return
    for child in children:
        try:
            words, used, rss = child.cmdline(), child.cpu_times(), child.memory_info().rss
        except psutil.Error:
            continue  # it has ended
        module = words[words.index("-m") + 1] if "-m" in words[:-1] else ""
        if module.startswith(OURS):
            share = (used.user + used.system) / max(time.time() - child.create_time(), 1.0)
            yield {"module": module, "pid": child.pid, "cpu": share, "rss": rss}
