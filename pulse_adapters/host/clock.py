"""The machine's two clocks as one moment, and the boot in which they count."""

import sys
import time

from pulse_adapters.workers.boot_clock import boot_ns
from pulse_adapters.workers.boot_id import boot_id
from pulse_core.model.errors import PulseError
from pulse_core.model.moment import Moment


class SystemClock:
    """Reads the wall clock and the boot clock, which counts time asleep and never jumps."""

    def __init__(self) -> None:
        if sys.platform != "linux":  # at the start: without /proc and pidfds it would fail later
            raise PulseError(f"Pulse guards processes on Linux only for now, and this is {sys.platform}")
        self._boot = boot_id()

    def now(self) -> Moment:
        """The present moment."""
        return Moment(time.time_ns() // 1000, self._boot, boot_us())


def boot_us() -> int:
    """Microseconds since boot, time asleep included."""
    return boot_ns() // 1000
