"""The machine's two clocks as one moment."""

import time

from pulse_adapters.host.boot import boot_id, require_linux
from pulse_core.model.moment import Moment


class SystemClock:
    """Reads the wall clock and the boot clock, which counts time asleep and never jumps."""

    def __init__(self) -> None:
        require_linux()
        self._boot = boot_id()

    def now(self) -> Moment:
        """The present moment."""
        return Moment(time.time_ns() // 1000, self._boot, boot_us())


def boot_us() -> int:
    """Microseconds since boot, time asleep included."""
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1000
