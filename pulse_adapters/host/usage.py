"""Reading the machine's meters: CPU, memory, load, and what the daemon itself costs."""

import os
import resource
import time
from typing import NamedTuple

from pulse_adapters.host.proc import content
from pulse_core.model.payload import Json

_PAGE = os.sysconf("SC_PAGE_SIZE")


class Cpu(NamedTuple):
    """Counters of one CPU, or of all, since boot: clock ticks in total and not idle."""

    total: int
    busy: int

    def share_since(self, then: "Cpu") -> float:
        """The fraction of the time between that was not idle."""
        total = self.total - then.total
        return min(1.0, max(0.0, round((self.busy - then.busy) / total, 4))) if total > 0 else 0.0


def cpus() -> dict[str, Cpu]:
    """The counters of `cpu` (all together) and of `cpu0`, `cpu1` …"""
    counters = {}
    for line in (content("/proc/stat") or b"").splitlines():
        if not line.startswith(b"cpu"):
            break
        name, *numbers = line.split()
        # user nice system idle iowait irq softirq steal; guests are in user already
        ticks = [int(number) for number in numbers[:8]]
        counters[name.decode()] = Cpu(sum(ticks), sum(ticks) - ticks[3] - ticks[4])
    return counters


class CpuMeter:
    """CPU use since the last reading, of all CPUs together and of the busiest one."""

    def __init__(self) -> None:
        self._last = cpus()

    def read(self) -> dict[str, Json]:
        """Fractions from 0 to 1; a CPU that was switched on meanwhile counts from now on."""
        last, self._last = self._last, cpus()
        shares = {name: now.share_since(last[name]) for name, now in self._last.items() if name in last}
        whole = shares.pop("cpu", 0.0)
        return {"cpu": whole, "cpu_max": max(shares.values(), default=whole)}


class SelfMeter:
    """What this process uses: a fraction of one core since the last reading, and resident bytes."""

    def __init__(self) -> None:
        self._last = _own()

    def read(self) -> dict[str, Json]:
        """Its share and size."""
        (then, spent), self._last = self._last, _own()
        now, spent_now = self._last
        share = (spent_now - spent) / (now - then) if now > then else 0.0
        pages = (content("/proc/self/statm") or b"0 0").split()[1]
        return {"self_cpu": round(share, 5), "self_rss": int(pages) * _PAGE}


def _own() -> tuple[float, float]:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return time.monotonic(), used.ru_utime + used.ru_stime


def memory() -> dict[str, Json]:
    """Used fractions of memory and swap, and bytes; what can be reclaimed counts as available."""
    lines = (line.split() for line in (content("/proc/meminfo") or b"").splitlines())
    kib = {field[0]: int(field[1]) for field in lines}
    total, available = kib.get(b"MemTotal:", 0), kib.get(b"MemAvailable:", kib.get(b"MemFree:", 0))
    swap, swap_free = kib.get(b"SwapTotal:", 0), kib.get(b"SwapFree:", 0)
    return {
        "memory": round(1 - available / total, 5) if total else 0.0,
        "memory_available": available * 1024,
        "memory_total": total * 1024,
        "swap": round(1 - swap_free / swap, 5) if swap else 0.0,
        "swap_total": swap * 1024,
    }


def load() -> dict[str, Json]:
    """The run queue's averages over 1, 5 and 15 minutes."""
    one, five, fifteen = os.getloadavg()
    return {"load1": round(one, 2), "load5": round(five, 2), "load15": round(fifteen, 2)}
