"""Load shedding: which work Pulse stops step by step while it uses too much itself, and when it resumes. Pure."""

from collections.abc import Mapping
from typing import NamedTuple

from pulse_core.model.json_types import Json
from pulse_core.model.moment import US_PER_SECOND, Moment
from pulse_core.model.sizes import format_size
from pulse_core.model.vitals import Sample
from pulse_core.settings import SelfSettings

MEASURES = (
    "watchers look four times less often",
    "logs are read every five seconds",
    "vitals are not kept on disk",
    "plugins and the engine are not asked",
)
"""What is shed at level 1, 2, 3 and 4, each with those before it. The survival rules are never shed."""

SLOW_WATCHERS, SLOW_LOGS, NO_VITALS, REFLEX_ALONE = range(1, len(MEASURES) + 1)

MINUTE = 60 * US_PER_SECOND
STEP_UP_AFTER = 30 * US_PER_SECOND
STEP_DOWN_AFTER = 120 * US_PER_SECOND
"""How long usage must be over a bound for the next step, and under all for a step back (longer than a measurement takes)."""

RECOVERED_SHARE = 0.8
"""The share of every bound below which usage counts as recovered."""

SLOWDOWN = 4.0
LOG_GAP = 5.0
SHORTEST_SLOWED = 1.0
"""Seconds: a watcher with a shorter interval is waiting for something, and is not slowed down."""

NEVER_SLOWED = frozenset({"system-resource"})
"""Survival rules and load shedding itself depend on its fresh samples."""


class Usage(NamedTuple):
    """One measurement of what Pulse uses: when, microseconds since the one before, usage in that time.

    cpu: share of one core; rss: bytes; late_ms: the event loop's worst lateness.
    """

    moment: Moment
    span: int
    cpu: float
    rss: int
    late_ms: float


class SheddingState(NamedTuple):
    """The level, its evidence, the measurements of the last minute (`looks`), and since when usage is over a bound or
    recovered (`calm`)."""

    level: int = 0
    evidence: str = ""
    looks: tuple[Usage, ...] = ()
    over: Moment | None = None
    calm: Moment | None = None


class Pace(NamedTuple):
    """How a watcher is slowed down: its interval is stretched, and nudges wait for the gap (seconds)."""

    stretch: float = 1.0
    gap: float = 0.0


class ResourceShare(NamedTuple):
    """Pulse's usage of one resource: in words, and as a share of its bound."""

    words: str
    share: float


def usage(sample: Sample, before: Moment | None) -> Usage | None:
    """Pulse's own usage in a sample of `system-resource`; None if the sample lacks it."""
    data: Mapping[str, Json] = sample.data
    if "self_cpu" not in data or "self_rss" not in data:
        return None
    span = sample.moment.since(before) if before else 0
    return Usage(sample.moment, span, data["self_cpu"], data["self_rss"], data.get("loop_late_ms", 0.0))


def next_state(shed: SheddingState, look: Usage, bounds: SelfSettings) -> SheddingState:
    """The state after one more measurement: at most one level up or down."""
    looks = _last_minute((*shed.looks, look))
    worst = max(resource_shares(looks, bounds), key=lambda take: take.share)
    over = (shed.over or look.moment) if worst.share >= 1 else None
    calm = (shed.calm or look.moment) if worst.share < RECOVERED_SHARE else None
    if over and shed.level < len(MEASURES) and look.moment.since(over) >= STEP_UP_AFTER:
        return SheddingState(shed.level + 1, worst.words)  # earlier usage says nothing about the new level
    if calm and shed.level and look.moment.since(calm) >= STEP_DOWN_AFTER:
        return SheddingState(shed.level - 1, f"at most {worst.words}", looks)
    return SheddingState(shed.level, shed.evidence, looks, over, calm)


def resource_shares(looks: tuple[Usage, ...], bounds: SelfSettings) -> list[ResourceShare]:
    """The usage of each resource that has a bound; CPU only counts over a whole minute."""
    newest, memory = looks[-1], bounds.memory_mb << 20
    rss = f"{format_size(newest.rss)} of memory, {format_size(memory)} are allowed"
    late = f"the loop is {newest.late_ms:.0f} ms late, {bounds.late_ms} ms are allowed"
    made = [ResourceShare(rss, newest.rss / memory), ResourceShare(late, newest.late_ms / bounds.late_ms)]
    span = sum(one.span for one in looks)
    if span >= MINUTE:
        cpu = sum(one.cpu * one.span for one in looks) / span
        made.append(ResourceShare(f"{cpu:.1%} of a core, {bounds.cpu:.1%} are allowed", cpu / bounds.cpu))
    return made


def _last_minute(looks: tuple[Usage, ...]) -> tuple[Usage, ...]:
    """The newest measurements that cover a minute, or all there are."""
    while sum(one.span for one in looks[1:]) >= MINUTE:
        looks = looks[1:]
    return looks


def pace(level: int, name: str, interval: float, usual: float) -> Pace:
    """How a watcher is slowed down at this level.

    interval: seconds until its next sample as it requests; usual: its interval while all is well.
    """
    gap = LOG_GAP if level >= SLOW_LOGS and name == "error-log" else 0.0
    hurried = interval < min(usual, SHORTEST_SLOWED)
    slower = level >= SLOW_WATCHERS and not hurried and name not in NEVER_SLOWED
    return Pace(SLOWDOWN if slower else 1.0, gap)
