"""Gauges: measurements with bounds, from which conditions are raised and cleared. Pure.

A condition is raised once its gauge was over its bound for long enough, and cleared when it is back within the other bound.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple, Protocol

from pulse_core.model.durations import duration_text
from pulse_core.model.event import Draft
from pulse_core.model.json_types import Json
from pulse_core.model.kinds import ConditionCleared, ConditionRaised
from pulse_core.model.moment import US_PER_SECOND, Moment
from pulse_core.projections.conditions import Condition, Conditions

STREAKS_FIELD = "over"
"""The field of a sample that holds the streaks, so that they outlive the daemon."""


class GaugeBound(Protocol):
    """At which value a condition is raised, below which it is cleared, and after how many microseconds over the bound."""

    @property
    def raise_(self) -> float: ...

    @property
    def clear(self) -> float: ...

    @property
    def for_(self) -> int: ...


class FixedBound(NamedTuple):
    """A bound that no table of the settings has in this form."""

    raise_: float
    clear: float
    for_: int = 0


class Gauge(NamedTuple):
    """One measurement and its bounds: the condition's name, its value (None: not measurable), and words.

    state: of the condition while it is raised; below: the value is bad when it falls to its bound, not when it rises;
    is_number: whether value and bound say something, and are told, or stand for good and bad; unwatched: why it is not
    measured any more, in words, which clears the condition.
    """

    name: str
    bound: GaugeBound
    value: float | None
    words: str
    state: str = "high"
    below: bool = False
    is_number: bool = True
    unwatched: str = ""

    def is_over(self, bound: float) -> bool:
        """Whether the value is at this bound, or beyond."""
        return self.value is not None and (self.value <= bound if self.below else self.value >= bound)


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


def conclude_gauges(
    gauges: Iterable[Gauge], kinds: tuple[str, ...], history: History, now: Moment
) -> tuple[tuple[Draft, ...], Mapping[str, Streak]]:
    """The events that follow, and the streaks from now on.

    kinds: what the names of all conditions begin with that these gauges may raise: what is not measured any more is cleared.
    """
    drafts: list[Draft] = []
    over: dict[str, Streak] = {}
    measured = {gauge.name: gauge for gauge in gauges}
    for name, gauge in measured.items():
        streak = _next_streak(gauge, history, now)
        if streak is not None:
            over[name] = streak
        wrong = history.over[name].seen if name in history.over else None
        drafts += _changes(gauge, history.conditions[name], streak, now, wrong)
    for name in history.conditions.raised:
        if name.startswith(kinds) and name not in measured:
            kept = history.over.get(name)
            if kept is not None and now.since(kept.seen) <= history.patience_us:
                over[name] = kept
            else:
                gone = ConditionCleared(evidence="it is not measured any more", unwatched=True)
                drafts.append(Draft(gone, subject=name))
    return tuple(drafts), over


def _next_streak(gauge: Gauge, history: History, now: Moment) -> Streak | None:
    """The streak after this measurement: a missing value neither ends nor extends it."""
    before = history.over.get(gauge.name)
    if gauge.unwatched:
        return None
    if gauge.value is None:
        return before
    if not gauge.is_over(gauge.bound.clear if history.conditions[gauge.name] else gauge.bound.raise_):
        return None
    holds = before is not None and now.since(before.seen) <= history.patience_us
    return Streak(before.since if holds and before else now, now)


def _changes(
    gauge: Gauge, stands: Condition | None, streak: Streak | None, now: Moment, wrong: Moment | None
) -> Iterator[Draft]:
    if gauge.unwatched and stands is not None:
        yield Draft(ConditionCleared(evidence=gauge.unwatched, unwatched=True), subject=gauge.name)
    if gauge.unwatched or gauge.value is None:
        return
    if stands is not None and not gauge.is_over(gauge.bound.clear):
        value = gauge.value if gauge.is_number else None
        cleared = ConditionCleared(evidence=gauge.words, value=value, wrong=wrong.at if wrong else 0)
        yield Draft(cleared, subject=gauge.name)
    elif stands is not None and stands.state == gauge.state:
        return
    elif streak is not None and (lasted := now.since(streak.since)) >= gauge.bound.for_:
        least = max(gauge.bound.for_, lasted // US_PER_SECOND * US_PER_SECOND)
        for_ = f", for at least {duration_text(least)}" if gauge.bound.for_ else ""
        numbers = {"value": gauge.value, "bound": gauge.bound.raise_} if gauge.is_number else {}
        since = streak.since.at if stands is None and lasted else 0
        raised = ConditionRaised(evidence=gauge.words + for_, state=gauge.state, failing=since, **numbers)
        yield Draft(raised, subject=gauge.name)


def streaks(data: Mapping[str, Json]) -> Mapping[str, Streak]:
    """The streaks that a sample holds."""
    kept = data.get(STREAKS_FIELD, {})
    return {name: Streak(Moment(*since), Moment(*seen)) for name, (since, seen) in kept.items()}


def streaks_to_json(over: Mapping[str, Streak]) -> dict[str, Json]:
    """Streaks as JSON, the way `streaks` reads them."""
    return {name: [list(streak.since), list(streak.seen)] for name, streak in over.items()}
