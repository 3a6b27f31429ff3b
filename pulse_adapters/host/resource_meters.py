"""Reads CPU use, memory and load of the machine, and the daemon's own use."""

import time

import psutil

from pulse_core.model.json_types import Json


class CpuMeter:
    """CPU use since the last reading, of all CPUs together and of the busiest one."""

    def __init__(self) -> None:
        psutil.cpu_percent(percpu=True)

    def read(self) -> dict[str, Json]:
        """Fractions from 0 to 1."""
        shares = [percent / 100 for percent in psutil.cpu_percent(percpu=True)] or [0.0]
        return {"cpu": round(sum(shares) / len(shares), 4), "cpu_max": round(max(shares), 4)}


class SelfMeter:
    """What this process uses: a fraction of one core since the last reading, and resident bytes."""

    def __init__(self) -> None:
        self._own = psutil.Process()
        self._last = time.monotonic(), time.process_time()

    def read(self) -> dict[str, Json]:
        """The CPU fraction and the resident bytes."""
        (then, spent), self._last = self._last, (time.monotonic(), time.process_time())
        now, spent_now = self._last
        share = (spent_now - spent) / (now - then) if now > then else 0.0
        return {"self_cpu": round(share, 5), "self_rss": self._own.memory_info().rss}


def memory() -> dict[str, Json]:
    """Used fractions of memory and swap, and bytes; what can be reclaimed counts as available."""
    memory, swap = psutil.virtual_memory(), psutil.swap_memory()
    return {
        "memory": round(1 - memory.available / memory.total, 5),
        "memory_available": memory.available,
        "memory_total": memory.total,
        "swap": round(swap.percent / 100, 5),
        "swap_total": swap.total,
    }


def load() -> dict[str, Json]:
    """The run queue's averages over 1, 5 and 15 minutes."""
    one, five, fifteen = psutil.getloadavg()
    return {"load1": round(one, 2), "load5": round(five, 2), "load15": round(fifteen, 2)}
