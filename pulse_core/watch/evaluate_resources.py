"""Evaluates one sample of the machine's resources. Pure: same sample, history and bounds give the same conclusion."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from pulse_core.model.durations import format_duration
from pulse_core.model.event import Draft
from pulse_core.model.json_types import Json
from pulse_core.model.kinds import ConditionCleared, ConditionRaised
from pulse_core.model.moment import US_PER_SECOND, Moment
from pulse_core.model.text import format_size
from pulse_core.projections.conditions import Condition, Conditions
from pulse_core.settings.groups import Bound
from pulse_core.settings.resources import ResourcesSettings

KINDS = ("memory", "swap", "pressure:", "disk:", "inodes:", "unmeasured:")
"""What the names of these conditions begin with."""

STREAKS_FIELD = "over"
"""The field of a sample that holds the streaks, so that they outlive the daemon."""

UNMEASURED = Bound.model_construct(raise_=1.0, clear=0.5, for_=60 * US_PER_SECOND)
"""How long a file system may fail to report its usage."""


class Gauge(NamedTuple):
    """One measurement and its bounds: the condition's name, a share (None: not measurable), and words."""

    name: str
    bound: Bound
    value: float | None
    words: str


class Streak(NamedTuple):
    """Over its bound since when, and when that was last seen."""

    since: Moment
    seen: Moment


class History(NamedTuple):
    """What was known before the sample: raised conditions, streaks, and for how many microseconds a streak
    holds while nothing is measured."""

    conditions: Conditions
    over: Mapping[str, Streak]
    patience_us: int


def conclude(
    data: Mapping[str, Json], settings: ResourcesSettings, history: History, now: Moment
) -> tuple[tuple[Draft, ...], Mapping[str, Streak]]:
    """The events that follow, and the streaks from now on.

    A condition is raised once it was over its bound for long enough, and cleared below `clear`. A file system that does
    not answer changes nothing, but for long that is a condition of its own. What is not measured any more (a path that
    was taken out of the settings, a kernel without pressure) is cleared.
    """
    drafts: list[Draft] = []
    over: dict[str, Streak] = {}
    measured = {gauge.name: gauge for gauge in gauges(data, settings)}
    for name, gauge in measured.items():
        streak = _next_streak(gauge, history, now)
        if streak is not None:
            over[name] = streak
        drafts += _changes(gauge, history.conditions[name], streak, now)
    for name in history.conditions.raised:
        if name.startswith(KINDS) and name not in measured:
            kept = history.over.get(name)
            if kept is not None and now.since(kept.seen) <= history.patience_us:
                over[name] = kept
            else:
                drafts.append(Draft(ConditionCleared(evidence="it is not measured any more"), subject=name))
    return tuple(drafts), over


def _next_streak(gauge: Gauge, history: History, now: Moment) -> Streak | None:
    """The streak after this measurement: a missing value neither ends nor extends it."""
    before = history.over.get(gauge.name)
    if gauge.value is None:
        return before
    low = gauge.bound.clear if history.conditions[gauge.name] else gauge.bound.raise_
    if gauge.value < low:
        return None
    holds = before is not None and now.since(before.seen) <= history.patience_us
    return Streak(before.since if holds and before else now, now)


def _changes(gauge: Gauge, stands: Condition | None, streak: Streak | None, now: Moment) -> Iterator[Draft]:
    if gauge.value is None:
        return
    if stands is not None:
        if gauge.value < gauge.bound.clear:
            yield Draft(ConditionCleared(evidence=gauge.words, value=gauge.value), subject=gauge.name)
    elif streak is not None and (lasted := now.since(streak.since)) >= gauge.bound.for_:
        for_ = f", for {format_duration(lasted // US_PER_SECOND * US_PER_SECOND)}" if gauge.bound.for_ else ""
        raised = ConditionRaised(
            evidence=gauge.words + for_, state="high", value=gauge.value, bound=gauge.bound.raise_
        )
        yield Draft(raised, subject=gauge.name)


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


def streaks(data: Mapping[str, Json]) -> Mapping[str, Streak]:
    """The streaks that a sample holds."""
    kept = data.get(STREAKS_FIELD, {})
    return {name: Streak(Moment(*since), Moment(*seen)) for name, (since, seen) in kept.items()}


def streaks_to_json(over: Mapping[str, Streak]) -> dict[str, Json]:
    """Streaks as JSON, the way `streaks` reads them."""
    return {name: [list(streak.since), list(streak.seen)] for name, streak in over.items()}
