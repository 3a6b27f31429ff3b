"""Pulse tells of a disk that is full; this tells of one that will be, while there is time to do something."""

from itertools import pairwise
from typing import Any

from pulse_core import Effect, Inner, Snapshot, Verdict, Window

MINUTE_US = 60_000_000
HOUR_US = 60 * MINUTE_US
SOON_US = 6 * HOUR_US
LEAST_US = 30_000_000
"""How long it must have been growing: less of it says nothing."""
USED = 0.7
"""The share of use below which nobody needs to hear of it."""


async def disk_fills_up(prev: Snapshot, curr: Snapshot, inner: Inner) -> Verdict:
    """Tell of each disk that is full within six hours if it goes on like this."""
    verdict = await inner(prev, curr)
    window = curr.window("system-resource")
    disks = window.last.data.get("disks", {}) if window.last else {}
    left = {path: left_us(window, path) for path, disk in disks.items() if disk.get("used", 0.0) >= USED}
    soon = {path: us for path, us in left.items() if us is not None and 0 < us < SOON_US}
    return verdict.plus(*(notice(path, us, curr) for path, us in soon.items()))


def left_us(window: Window, path: str) -> float | None:
    """Microseconds until no byte is free, as the last minute went; None if it did not shrink steadily."""
    known = [(sample.moment, free(sample.data, path)) for sample in window.samples]
    points = [(moment, size) for moment, size in known if size is not None]
    if len(points) < 2:
        return None
    (began, first), (ended, last) = points[0], points[-1]
    steady = all(later[1] < earlier[1] for earlier, later in pairwise(points))
    lasted = ended.since(began)
    return last * lasted / (first - last) if steady and lasted >= LEAST_US else None


def free(data: Any, path: str) -> int | None:
    """The bytes that were free; None if the file system did not say."""
    size = data.get("disks", {}).get(path, {}).get("free")
    return int(size) if size is not None else None


def notice(path: str, us: float, curr: Snapshot) -> Effect:
    """What people are told."""
    in_words = f"{us / HOUR_US:.1f} hours" if us >= HOUR_US else f"{us / MINUTE_US:.1f} minutes"
    title = f"{path} will be full in {in_words}"
    return Effect(
        action="notify",
        key=f"notify:disk-fills-up:{path}",
        params={"title": title, "text": f"{title}, if it goes on growing as in the last minute"},
        reason=title,
        samples=curr.samples("system-resource"),
    )
