"""Finds causes of log lines: the death of the process that wrote them, or a raised condition.

Once people are notified about the cause, or it is repaired, its symptoms need no notice. Critical lines always do.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

from pulse_core.model.condition_names import DEGRADED, NETWORK, SLOW
from pulse_core.model.durations import rough_duration
from pulse_core.model.moment import US_PER_SECOND, Moment
from pulse_core.projections import ProcessHistory, Snapshot
from pulse_core.projections.logs import SimilarLines
from pulse_core.settings import ProcessSettings

SETTLE = 1 * US_PER_SECOND
"""How long it takes until the death of the process that wrote these lines is recorded."""
AFTERMATH = 30 * US_PER_SECOND
"""How long after a condition is cleared lines may still be caused by it."""

Explains = Sequence[tuple[tuple[str, ...], re.Pattern[str]]]
"""Prefixes of condition names, and the lines that these conditions explain."""

EXPLAINS: Explains = (
    (
        (NETWORK,),
        re.compile(
            r"connect|timed? ?out|timeout|unreachable|no route|resolv|\bdns\b|getaddrinfo|name or service|network",
            re.IGNORECASE,
        ),
    ),
    (("disk:", "inodes:"), re.compile(r"no space|disk (?:is )?full|enospc|errno 28|quota", re.IGNORECASE)),
    (("memory", "swap"), re.compile(r"memory|\boom\b|enomem|errno 12", re.IGNORECASE)),
)
"""The lines that the core's own conditions explain."""
_NO_CAUSE = frozenset({SLOW, DEGRADED})


class Cause(NamedTuple):
    """Why lines need no notice, and microseconds until that may end by itself."""

    why: str
    wait_us: int | None = None


def cause_of(source: str, lines: SimilarLines, curr: Snapshot, explains: Explains) -> Cause | None:
    """The cause of these lines, or None."""
    if lines.severity == "critical":
        return None
    process = writing_process(source, curr.settings.process)
    return (_of_process(process, lines, curr) if process else None) or _of_condition(lines, curr, explains)


def writing_process(source: str, processes: Sequence[ProcessSettings]) -> ProcessSettings | None:
    """The guarded process whose log this is: its unit's journal, or `logs/NETWORK.log` as Pulse itself has it written."""
    for process in processes:
        unit = process.systemd_unit and _full_unit_name(
            f"{'user:' if process.systemd_user else ''}{process.systemd_unit}"
        )
        if unit == _full_unit_name(source) or source.endswith(f"/logs/{process.name}.log"):
            return process
    return None


def _full_unit_name(unit: str) -> str:
    return unit if "." in unit or "/" in unit else f"{unit}.service"


def _of_process(process: ProcessSettings, lines: SimilarLines, curr: Snapshot) -> Cause | None:
    history, now = curr.process(process.name), curr.now
    if history.stop is not None and history.stop.holds(now):
        return Cause(f"{process.name} is stopped on purpose")
    if history.up is None:
        return Cause(f"{process.name} is dead, which is seen to") if history.down is not None else None
    if _came_with_death(history, lines, now):
        return Cause(f"{process.name} died of it, or with it, and is up again")
    if (left := SETTLE - now.since(lines.first)) > 0:
        return Cause(f"it is looked whether {process.name} dies of it", left)
    return None


def _came_with_death(history: ProcessHistory, lines: SimilarLines, now: Moment) -> bool:
    """Whether it was restarted and is up since the last of the lines; otherwise they came while it was alive."""
    return (
        bool(history.attempts) and history.up is not None and now.since(lines.last) >= now.since(history.up)
    )


def _of_condition(lines: SimilarLines, curr: Snapshot, explains: Explains) -> Cause | None:
    for names, about in explains:
        if not about.search(lines.line):
            continue
        for name, condition in curr.conditions.raised.items():
            if name.startswith(names) and condition.state not in _NO_CAUSE:
                return Cause(
                    f"explained by {name}, wrong for {rough_duration(curr.now.since(condition.since))}"
                )
        for name, cleared in curr.conditions.cleared.items():
            since = curr.now.since(cleared)
            if name.startswith(names) and curr.now.since(lines.last) >= since - AFTERMATH:
                return Cause(f"explained by {name}, which was wrong until {rough_duration(since)} ago")
    return None
