"""The watcher of the machine's vital signs, and of the daemon's own."""

import asyncio
from collections.abc import Callable
from types import TracebackType

from pulse_adapters.host.disks import Disks
from pulse_adapters.host.pressure import PsiTriggers, pressure
from pulse_adapters.host.proc import require_linux
from pulse_adapters.host.spawn import Spawner
from pulse_adapters.host.usage import CpuMeter, SelfMeter, load, memory
from pulse_core.model.vitals import Reading, Window
from pulse_core.settings import Settings


class SystemResource:
    """CPU, memory, swap, load, disks, pressure; all shares are fractions from 0 to 1, sizes are bytes.

    Entered as a context it also asks the kernel to tell pressure at once; such a sample names the resource
    in `trigger` and is worth a tick.
    """

    name = key = "system-resource"
    timeout = 5.0

    def __init__(
        self, settings: Callable[[], Settings], lateness: Callable[[], float], spawner: Spawner
    ) -> None:
        require_linux()
        self._settings = settings
        self._lateness = lateness
        self._nudge = asyncio.Event()
        self._cpu, self._own = CpuMeter(), SelfMeter()
        self._disks = Disks(spawner)
        self._triggers = PsiTriggers(self._fired)
        self._trigger = ""

    @property
    def interval(self) -> float:
        """Seconds between two samples."""
        return self._settings().watch.system_interval / 1e6

    @property
    def nudge(self) -> asyncio.Event:
        """Set when a resource comes under pressure."""
        return self._nudge

    def _fired(self, resource: str) -> None:
        self._trigger = resource
        self._nudge.set()

    async def collect(self) -> Reading:
        """One full sample; a disk that does not answer says so in its place."""
        trigger, self._trigger = self._trigger, ""
        data = self._cpu.read() | memory() | load() | self._own.read()
        data["loop_late_ms"] = round(self._lateness(), 3)
        data["psi"] = pressure()
        data["disks"] = await self._disks.sample(self._settings().watch.disks)
        return Reading(data | ({"trigger": trigger} if trigger else {}))

    def should_wake(self, window: Window) -> bool:
        """Whether the newest sample was taken because a resource came under pressure."""
        return window.last is not None and "trigger" in window.last.data

    async def __aenter__(self) -> "SystemResource":
        self._triggers.open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._triggers.close()
        self._disks.close()
