"""Evaluates one sample of the machine's resources. Pure: same sample, history and bounds give the same conclusion."""

from collections.abc import Iterator, Mapping

from pulse_core.model.event import Draft
from pulse_core.model.json_types import Json
from pulse_core.model.moment import US_PER_SECOND, Moment
from pulse_core.model.text import format_size
from pulse_core.projections.gauges import FixedBound, Gauge, History, Streak, conclude_gauges
from pulse_core.settings.resources import ResourcesSettings

KINDS = ("memory", "swap", "pressure:", "disk:", "inodes:", "unmeasured:")
"""What the names of these conditions begin with."""

UNMEASURED = FixedBound(1.0, 0.5, 60 * US_PER_SECOND)
"""How long a file system may fail to report its usage."""


def conclude(
    data: Mapping[str, Json], settings: ResourcesSettings, history: History, now: Moment
) -> tuple[tuple[Draft, ...], Mapping[str, Streak]]:
    """The events that follow, and the streaks from now on.

    A file system that does not answer changes nothing, but for long that is a condition of its own. What is not measured
    any more (a path that was taken out of the settings, a kernel without pressure) is cleared.
    """
    return conclude_gauges(gauges(data, settings), KINDS, history, now)


def gauges(data: Mapping[str, Json], settings: ResourcesSettings) -> Iterator[Gauge]:
    """Every measurement in a sample of `system-resource` that has bounds."""
    left = format_size(data["memory_available"])
    memory = f"memory is used to {data['memory']:.1%}, {left} are available"
    yield Gauge("memory", settings.memory, data["memory"], memory)
    swap = f"swap is used to {data['swap']:.1%} of {format_size(data['swap_total'])}"
    yield Gauge("swap", settings.swap, data["swap"], swap)
    for what, of in (("memory", "memory"), ("io", "the disks")):
        if (share := data["psi"].get(what, {}).get("full")) is not None:
            words = f"everything stood still for want of {of} in {share:.1%} of the last ten seconds"
            yield Gauge(f"pressure:{what}", settings.pressure, share, words)
    for bound in settings.disk:
        path, disk = bound.path, data["disks"].get(bound.path, {})
        if "used" not in disk:
            words = f"how full {path} is cannot be told: {disk.get('error', 'it was not looked at')}"
            yield Gauge(f"disk:{path}", bound, None, words)
            yield Gauge(f"inodes:{path}", bound, None, words)
            yield Gauge(f"unmeasured:{path}", UNMEASURED, 1.0, words)
            continue
        words = f"{path} is full to {disk['used']:.1%}, {format_size(disk['free'])} are free"
        yield Gauge(f"disk:{path}", bound, disk["used"], words)
        if (share := disk.get("inodes")) is not None:
            yield Gauge(f"inodes:{path}", bound, share, f"{share:.1%} of the inodes of {path} are used")
        yield Gauge(f"unmeasured:{path}", UNMEASURED, 0.0, f"{path} tells how full it is")
