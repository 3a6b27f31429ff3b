"""The watcher of the machine's and the daemon's resources; it reports when the machine runs short of one."""

import asyncio
import os
import select
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress

from pulse_adapters.host.clock import SystemClock
from pulse_adapters.host.disks import Disks
from pulse_adapters.host.memory_consumers import MemoryConsumers
from pulse_adapters.host.spawner import Spawner
from pulse_adapters.workers.proc import read_proc_file
from pulse_core.model.json_answers import HelperCostJson
from pulse_core.model.json_types import Json
from pulse_core.model.names import OF_MEMORY, SYSTEM_RESOURCE
from pulse_core.model.vitals import WINDOW_US, Reading, Window
from pulse_core.projections.gauges import STREAKS_FIELD, History, streaks, streaks_to_json
from pulse_core.projections.state import CurrentState
from pulse_core.settings.settings import Settings
from pulse_core.watch.evaluate_resources import KINDS, conclude

_PAGE = os.sysconf("SC_PAGESIZE")
OURS = ("pulse_adapters.", "upulse_cli.")


class ResourceMeter:
    """Reads what the machine and this process use; of CPU time, what was used since the last reading.

    From /proc itself: psutil reads more of it than is asked for, and takes a mebibyte of the daemon's memory.
    """

    def __init__(self) -> None:
        self._cpus = _cpu_times()
        self._last = time.monotonic(), time.process_time()

    def read(self) -> dict[str, Json]:
        """Shares from 0 to 1 and bytes. What memory can be reclaimed is available; `self_cpu` is of one core."""
        before, self._cpus = self._cpus, _cpu_times()
        cpus = [_busy(times, before[name]) for name, times in self._cpus.items() if name in before] or [0.0]
        (then, spent), self._last = self._last, (time.monotonic(), time.process_time())
        now, spent_now = self._last
        lines = (line.split(None, 2) for line in (read_proc_file("/proc/meminfo") or b"").splitlines())
        size = {line[0].decode(): int(line[1]) * 1024 for line in lines}
        total, swap = size["MemTotal:"], size.get("SwapTotal:", 0)
        available = min(size["MemAvailable:"], total)  # a container may be told the sizes of two machines
        one, five, fifteen = os.getloadavg()
        return {
            "cpu": round(sum(cpus) / len(cpus), 4),
            "cpu_max": round(max(cpus), 4),
            "memory": round(1 - available / total, 5),
            "memory_available": available,
            "memory_total": total,
            "swap": round(1 - size["SwapFree:"] / swap, 5) if swap else 0.0,
            "swap_total": swap,
            "load1": round(one, 2),
            "load5": round(five, 2),
            "load15": round(fifteen, 2),
            "self_cpu": round((spent_now - spent) / (now - then), 5) if now > then else 0.0,
            "self_rss": int((read_proc_file("/proc/self/statm") or b"0 0").split()[1]) * _PAGE,
        }


def _cpu_times() -> dict[bytes, tuple[int, int]]:
    """Of each CPU the ticks in which it was idle (or waited for a disk), and all: the first eight, guests are in these."""
    times = {}
    for line in (read_proc_file("/proc/stat") or b"").splitlines()[1:]:
        if not line.startswith(b"cpu"):
            break
        name, *words = line.split(None, 9)[:9]
        ticks = list(map(int, words))
        times[name] = ticks[3] + ticks[4], sum(ticks)
    return times


def _busy(now: tuple[int, int], before: tuple[int, int]) -> float:
    """The share of the time between two readings in which a CPU was busy; the kernel's counts may go back a little."""
    idle, whole = now[0] - before[0], now[1] - before[1]
    return min(max(1 - idle / whole, 0.0), 1.0) if whole > 0 else 0.0


def child_costs(daemon: int) -> Iterator[HelperCostJson]:
    """The daemon's own child processes: the share of a core that each used since its start, its memory (bytes)."""
    import psutil  # only here: the daemon needs none of it

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


UNSEEN = 3
"""Intervals without a sample after which what was over its bound before counts as over anew; or a minute, if longer."""

# Unprivileged triggers need windows that are multiples of 2 s. Microseconds of stall in two seconds: memory
# that stalls a tenth of the time is about to thrash, disks and CPUs are often busy to a half in good health.
TRIGGERS: Mapping[str, str] = {
    "cpu": "some 1000000 2000000",
    "memory": "some 200000 2000000",
    "io": "some 1000000 2000000",
}
_APART_S = 2.0


class SystemResource:
    """CPU, memory, swap, load, disks, pressure; all shares are fractions from 0 to 1, sizes are bytes.

    Entered as a context it also registers PSI triggers; a sample that one caused names the resource in
    `trigger` and causes a tick. While memory is short it also lists what may be stopped, in `consumers`.

    current_state: the log's; window: the samples of the last minute, an earlier daemon's included.
    """

    name = key = SYSTEM_RESOURCE
    conditions = KINDS
    timeout = 5.0

    def __init__(
        self,
        settings: Callable[[], Settings],
        lateness: Callable[[], float],
        spawner: Spawner,
        consumers: MemoryConsumers,
        current_state: CurrentState,
        window: Callable[[], Window],
    ) -> None:
        self._settings = settings
        self._lateness = lateness
        self._consumers, self._current_state, self._window = consumers, current_state, window
        self._clock = SystemClock()
        self.nudge = asyncio.Event()
        """Set when a resource comes under pressure."""
        self._meter = ResourceMeter()
        self._disks = Disks(spawner)
        self._triggers = PsiTriggers(self._fired)
        self._trigger = ""

    @property
    def interval(self) -> float:
        """Seconds between two samples."""
        return self._settings().watch.system_interval / 1e6

    def _fired(self, resource: str) -> None:
        self._trigger = resource
        self.nudge.set()

    async def collect(self) -> Reading:
        """Take one full sample; a disk that does not answer has an error in its place."""
        trigger, self._trigger = self._trigger, ""
        data = self._meter.read()
        data["loop_late_ms"] = round(self._lateness(), 3)
        data["psi"] = pressure()
        settings = self._settings()
        bounded = (bound.path for bound in settings.resources.disk)
        data["disks"] = await self._disks.sample(list(dict.fromkeys((*settings.watch.disks, *bounded))))
        if trigger:
            data["trigger"] = trigger
        standing = self._current_state().conditions
        is_short = any(standing[name] for name in OF_MEMORY)
        if settings.resources.stop and is_short and (consumers := await self._consumers.largest()):
            data["consumers"] = consumers
        last = self._window().last
        patience = max(WINDOW_US, UNSEEN * settings.watch.system_interval)
        history = History(standing, streaks(last.data) if last else {}, patience)
        drafts, over = conclude(data, settings.resources, history, self._clock.now())
        if over:
            data[STREAKS_FIELD] = streaks_to_json(over)
        return Reading(data, drafts)

    def should_wake(self, window: Window) -> bool:
        """Whether the newest sample was taken because a resource came under pressure."""
        return window.last is not None and "trigger" in window.last.data

    async def __aenter__(self) -> "SystemResource":
        self._triggers.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        self._triggers.close()


def pressure() -> dict[str, Json]:
    """For each resource the share of the last 10 s in which `some` or all (`full`) work was stalled, 0 to 1."""
    shares: dict[str, Json] = {}
    for name in TRIGGERS:
        if text := read_proc_file(f"/proc/pressure/{name}"):  # lines as `some avg10=1.50 avg60=…`, in percent
            fields = (line.split(b" ", 2) for line in text.splitlines())
            shares[name] = {field[0].decode(): round(float(field[1][6:]) / 100, 4) for field in fields}
    return shares


class PsiTriggers:
    """Calls back with a resource's name when it comes under pressure, at most once in two seconds.

    asyncio waits for reading and writing only, and the kernel signals pressure as priority data: so each
    trigger sits in an epoll of its own, which itself becomes readable.
    """

    def __init__(self, fired: Callable[[str], None], triggers: Mapping[str, str] = TRIGGERS) -> None:
        self._fired = fired
        self._triggers = triggers
        self._open: list[tuple[int, select.epoll]] = []
        self._last = -_APART_S

    def open(self) -> tuple[str, ...]:
        """Register with the kernel; returns the resources registered (old kernels lack PSI, containers may forbid it)."""
        return tuple(name for name, trigger in self._triggers.items() if self._register(name, trigger))

    def _register(self, name: str, trigger: str) -> bool:
        try:
            file = os.open(f"/proc/pressure/{name}", os.O_RDWR | os.O_NONBLOCK)
        except OSError:
            return False
        try:
            os.write(file, trigger.encode() + b"\0")
        except OSError:
            os.close(file)
            return False
        told = select.epoll()
        told.register(file, select.EPOLLPRI)
        asyncio.get_running_loop().add_reader(told.fileno(), self._told, name, told)
        self._open.append((file, told))
        return True

    def _told(self, name: str, told: select.epoll) -> None:
        # Being asked whether it is readable has consumed the event already: the list may be empty here.
        told.poll(0)
        now = time.monotonic()
        if now - self._last >= _APART_S:
            self._last = now
            self._fired(name)

    def close(self) -> None:
        """Remove the triggers."""
        for file, told in self._open:
            with suppress(RuntimeError):  # the loop may be closed already
                asyncio.get_running_loop().remove_reader(told.fileno())
            told.close()
            os.close(file)
        self._open.clear()
