"""The kernel's boot clock as the machine counts it, whatever time namespace this process is in.

A namespace adds an offset to CLOCK_BOOTTIME, and to the start time of every process in /proc. Without this, a daemon that
is started again in another one would take all that it guards for other processes of the same numbers.
"""

import time
from contextlib import suppress
from pathlib import Path

NANOSECONDS = 1_000_000_000


def offset_ns(table: Path = Path("/proc/self/timens_offsets")) -> int:
    """Nanoseconds that this process's time namespace adds; 0 where the kernel has none."""
    with suppress(OSError, ValueError):
        for line in table.read_text().splitlines():
            clock, seconds, nanoseconds = line.split()
            if clock in ("boottime", str(time.CLOCK_BOOTTIME)):  # Linux 5.6 tells its number
                return int(seconds) * NANOSECONDS + int(nanoseconds)
    return 0


OFFSET_NS = offset_ns()
"""No process can leave its time namespace but by a new program, or the kernel's `setns`, which nothing here calls."""


def boot_ns() -> int:
    """Nanoseconds since boot, time asleep included."""
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME) - OFFSET_NS
