"""What somebody who watches a home wants to see at once: its status, the newest effects and ticks, and courses."""

from collections.abc import Mapping, Sequence
from typing import Any

from pulse_core.app.context import HomeContext
from pulse_core.app.effect_timeline import effect_timeline, last_effects
from pulse_core.app.status import home_status

SHOWN = 8
COURSE_US = 600_000_000


def overview(home: HomeContext) -> dict[str, Any]:
    """How everything stands, the newest effects and the last ticks, newest first."""
    with home.events() as log, home.vitals() as vitals:
        effects = [effect_timeline(log, wish).spelled() for wish in last_effects(log, SHOWN)]
        ticks = [tick.spelled() for tick in vitals.ticks(SHOWN)]
        now = home.clock.now().at
        samples = [sample.data for sample in vitals.between(now - COURSE_US, now, "system-resource")]
    return {**home_status(home), "recent": effects, "ticks": ticks, "courses": courses(samples)}


def courses(samples: Sequence[Mapping[str, Any]]) -> dict[str, list[float]]:
    """CPU, memory, load and each disk's use over the last minutes, oldest first."""
    found: dict[str, list[float]] = {}
    for data in samples:
        used = {path: disk.get("used") for path, disk in data.get("disks", {}).items()}
        for name, value in {**{name: data.get(name) for name in ("cpu", "memory", "load1")}, **used}.items():
            if value is not None:
                found.setdefault(name, []).append(value)
    return found
