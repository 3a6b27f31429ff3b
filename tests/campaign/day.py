"""A day in accelerated simulation, in a process of its own: `python -m tests.campaign.day HOURS SEED`."""

import gc
import json
import logging
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.simulation.day import Day, lived

WARM = 2
"""Hours that are lived first: caches of fixed size fill, and what is only imported when it is needed is there."""

GROWTH = 2 << 20
"""Bytes of resident memory that a day may add."""

PAGE = os.sysconf("SC_PAGE_SIZE")


def resident() -> int:
    """Bytes of resident memory of this process."""
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE


def descriptors() -> int:
    """Open files of this process."""
    return len(os.listdir("/proc/self/fd"))


def live(hours: int, seed: int) -> dict[str, Any]:
    """Live so many hours after the warm-up; what memory and descriptors did meanwhile."""
    logging.disable(logging.CRITICAL)
    seen: list[tuple[int, int]] = []

    def look(hour: int, day: Day) -> None:
        if hour >= WARM:
            seen.append((resident(), descriptors()))

    world = lived(WARM + hours, look, seed)
    (first, few), (last, many) = seen[0], seen[-1]
    ticks = world.daemon.ticker.number if world.daemon else 0
    return {"hours": hours, "ticks": ticks, "grown": last - first, "descriptors": many - few}


def run(hours: int, seed: int) -> dict[str, Any]:
    """The same in a new process, so that nobody else's memory is in it."""
    argv = [sys.executable, "-m", "tests.campaign.day", str(hours), str(seed)]
    done = subprocess.run(argv, capture_output=True, text=True, check=True, timeout=60)
    told: dict[str, Any] = json.loads(done.stdout)
    return told


def holds(told: dict[str, Any]) -> bool:
    """Whether a day added no more than it may."""
    return bool(told["grown"] <= GROWTH and told["descriptors"] <= 0)


if __name__ == "__main__":
    print(json.dumps(live(int(sys.argv[1]), int(sys.argv[2]))))
