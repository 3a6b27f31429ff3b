"""What Pulse gives up while it takes too much itself, one step after the other, and takes up again. Pure."""

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
"""What is given up at level 1, 2, 3 and 4, each with those before it. The survival rules are not among them."""

SLOW_WATCHERS, SLOW_LOGS, NO_VITALS, REFLEX_ALONE = range(1, len(MEASURES) + 1)

MINUTE = 60 * US_PER_SECOND
STEP_UP_AFTER = 30 * US_PER_SECOND
STEP_DOWN_AFTER = 120 * US_PER_SECOND
"""How long it must be too much for the next step, and well for a step back: longer than it takes to know the latter."""

RECOVERED_SHARE = 0.8
"""The share of every bound below which it is well again."""

SLOWDOWN = 4.0
LOG_GAP = 5.0
SHORTEST_SLOWED = 1.0
"""Seconds: who wants to look again sooner than this is waiting for something, and is not slowed down."""

NEVER_SLOWED = frozenset({"system-resource"})
"""Survival rules, and this very decision, stand on its samples being fresh."""


class Usage(NamedTuple):
    """One look at what Pulse takes: when, microseconds since the look before, what was used in that time.

    cpu: share of one core; rss: bytes; late_ms: the event loop's worst lateness.
    """

    moment: Moment
    span: int
    cpu: float
    rss: int
    late_ms: float


class SheddingState(NamedTuple):
    """How much is given up, on what evidence; the looks of the last minute; since when it is too much, or well."""

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
    """What Pulse takes of one thing: in words, and as a share of what it may."""

    words: str
    share: float


def usage(sample: Sample, before: Moment | None) -> Usage | None:
    """What a sample of `system-resource` says of Pulse itself; None if it says nothing."""
    data: Mapping[str, Json] = sample.data
    if "self_cpu" not in data or "self_rss" not in data:
        return None
    span = sample.moment.since(before) if before else 0
    return Usage(sample.moment, span, data["self_cpu"], data["self_rss"], data.get("loop_late_ms", 0.0))


def next_state(shed: SheddingState, look: Usage, bounds: SelfSettings) -> SheddingState:
    """The decision after one more look: at most one step worse or better."""
    looks = _last_minute((*shed.looks, look))
    worst = max(resource_shares(looks, bounds), key=lambda take: take.share)
    over = (shed.over or look.moment) if worst.share >= 1 else None
    calm = (shed.calm or look.moment) if worst.share < RECOVERED_SHARE else None
    if over and shed.level < len(MEASURES) and look.moment.since(over) >= STEP_UP_AFTER:
        return SheddingState(
            shed.level + 1, worst.words
        )  # what was used before says nothing about what is now
    if calm and shed.level and look.moment.since(calm) >= STEP_DOWN_AFTER:
        return SheddingState(shed.level - 1, f"at most {worst.words}", looks)
    return SheddingState(shed.level, shed.evidence, looks, over, calm)


def resource_shares(looks: tuple[Usage, ...], bounds: SelfSettings) -> list[ResourceShare]:
    """What is taken of each thing that has a bound; the processor only counts over a whole minute."""
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
    """The newest looks that cover a minute, or all there are."""
    while sum(one.span for one in looks[1:]) >= MINUTE:
        looks = looks[1:]
    return looks


def pace(level: int, name: str, interval: float, usual: float) -> Pace:
    """How a watcher is slowed down at this level.

    interval: seconds that it wants to rest now; usual: what it rests when nothing is the matter.
    """
    gap = LOG_GAP if level >= SLOW_LOGS and name == "error-log" else 0.0
    hurried = interval < min(usual, SHORTEST_SLOWED)
    slower = level >= SLOW_WATCHERS and not hurried and name not in NEVER_SLOWED
    return Pace(SLOWDOWN if slower else 1.0, gap)
