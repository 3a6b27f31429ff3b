"""Load shedding: which work Pulse stops step by step while it uses too much itself, and when it resumes.

All but the class that holds the state is pure.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from pulse_core.daemon.reporter import Reporter
from pulse_core.model.event import Draft
from pulse_core.model.home_status import ShedStatus
from pulse_core.model.json_types import Json
from pulse_core.model.kinds import WorkShed
from pulse_core.model.moment import US_PER_SECOND, Moment
from pulse_core.model.names import SYSTEM_RESOURCE
from pulse_core.model.text import format_size
from pulse_core.model.vitals import Sample
from pulse_core.ports.watcher import Watcher
from pulse_core.settings.settings import Settings
from pulse_core.settings.telemetry import SelfSettings

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

NEVER_SLOWED = frozenset({SYSTEM_RESOURCE})
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


def usage(sample: Sample, before: Moment | None) -> Usage | None:
    """Pulse's own usage in a sample of `system-resource`; None if the sample lacks it."""
    data: Mapping[str, Json] = sample.data
    if "self_cpu" not in data or "self_rss" not in data:
        return None
    span = sample.moment.since(before) if before else 0
    return Usage(sample.moment, span, data["self_cpu"], data["self_rss"], data.get("loop_late_ms", 0.0))


def next_state(shed: SheddingState, look: Usage, bounds: SelfSettings) -> SheddingState:
    """The state after one more measurement: at most one level up or down."""
    looks = (*shed.looks, look)
    while sum(one.span for one in looks[1:]) >= MINUTE:
        looks = looks[1:]  # the newest that cover a minute, or all there are
    span, memory = sum(one.span for one in looks), bounds.memory_mb << 20
    rss = f"{format_size(look.rss)} of memory, {format_size(memory)} are allowed"
    late = f"the loop is {look.late_ms:.0f} ms late, {bounds.late_ms} ms are allowed"
    shares = {rss: look.rss / memory, late: look.late_ms / bounds.late_ms}
    if span >= MINUTE:  # CPU only counts over a whole minute
        cpu = sum(one.cpu * one.span for one in looks) / span
        shares[f"{cpu:.1%} of a core, {bounds.cpu:.1%} are allowed"] = cpu / bounds.cpu
    worst = max(shares, key=lambda words: shares[words])
    over = (shed.over or look.moment) if shares[worst] >= 1 else None
    calm = (shed.calm or look.moment) if shares[worst] < RECOVERED_SHARE else None
    if over and shed.level < len(MEASURES) and look.moment.since(over) >= STEP_UP_AFTER:
        return SheddingState(shed.level + 1, worst)  # earlier usage says nothing about the new level
    if calm and shed.level and look.moment.since(calm) >= STEP_DOWN_AFTER:
        return SheddingState(shed.level - 1, f"at most {worst}", looks)
    return SheddingState(shed.level, shed.evidence, looks, over, calm)


def pace(level: int, name: str, interval: float, usual: float) -> Pace:
    """How a watcher is slowed down at this level.

    interval: seconds until its next sample as it requests; usual: its interval while all is well.
    """
    gap = LOG_GAP if level >= SLOW_LOGS and name == "error-log" else 0.0
    hurried = interval < min(usual, SHORTEST_SLOWED)
    slower = level >= SLOW_WATCHERS and not hurried and name not in NEVER_SLOWED
    return Pace(SLOWDOWN if slower else 1.0, gap)


class SelfMonitor:
    """Holds how much work is shed now; others ask it before they begin optional work.

    newest: the newest sample of the system. A new daemon sheds nothing: the usage of an earlier one ended with it.
    """

    def __init__(
        self,
        settings: Callable[[], Settings],
        newest: Callable[[], Sample | None],
        reporter: Reporter,
    ) -> None:
        self.settings, self.newest, self.reporter = settings, newest, reporter
        self.shed = SheddingState()
        self._seen: Sample | None = None

    def pace(self, watcher: Watcher) -> Pace:
        """How this watcher is slowed down."""
        looks = self.settings().watch.process_interval / US_PER_SECOND
        usual = looks if watcher.name == "process-alive" else float("inf")
        return pace(self.shed.level, watcher.name, watcher.interval, usual)

    def begin(self) -> None:
        """Ignore the samples so far: they measured another daemon."""
        self._seen = self.newest()

    async def look(self) -> None:
        """Evaluate the newest sample, unless that was done; a step up or down is recorded."""
        before, self._seen = self._seen, self.newest()
        if self._seen is None or self._seen is before:
            return
        used = usage(self._seen, before.moment if before else None)
        if used is not None:
            level, self.shed = self.shed.level, next_state(self.shed, used, self.settings().self_)
            if self.shed.level != level:
                measures = MEASURES[: self.shed.level]
                shed = WorkShed(level=self.shed.level, measures=measures, evidence=self.shed.evidence)
                await self.reporter.record("self", Draft(shed))

    def report(self) -> ShedStatus | None:
        """What is shed and the evidence for it; None if nothing is."""
        if not self.shed.level:
            return None
        level = self.shed.level
        evidence = f"{self.shed.evidence}, at the last step"
        return {"level": level, "measures": list(MEASURES[:level]), "evidence": evidence}
