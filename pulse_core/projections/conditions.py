"""Conditions: what is wrong with the machine now, since when, and which measures were taken."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from pulse_core.model.durations import UNITS, duration_text
from pulse_core.model.event import Event
from pulse_core.model.kinds import ConditionCleared, ConditionRaised, Effect, EffectAcked
from pulse_core.model.moment import Moment
from pulse_core.model.names import SETTLING
from pulse_core.model.payload import decode_plain
from pulse_core.model.text import freed_text
from pulse_core.projections.effects import decode_plain_effect

UNWRITTEN = "unwritten"
"""The name of the condition that the log can't be written."""
GONE = "log-gone"
"""The name of the condition that the log was deleted or replaced under the daemon."""
DAMAGED = "log-damaged"
"""The name of the condition that the whole log was read, and is not what was written."""
ENGINE_MISSING = "engine-missing"
"""The name of the condition that an engine is in force, and its repository is gone or broken."""
SET_ASIDE = "engine-set-aside"
"""The name of the condition that the engine does not run since the loops that serve it end."""
FOR = "for_condition"
"""The name of an effect's param that names the condition it answers."""
UNWATCHED_TEXTS = (
    "it is not checked any more",
    "it is not measured any more",
    ", and is not measured any more",
    "it is not watched any more",
    "the network is not watched any more",
    "it is not watched in safe mode",
)
"""How the evidence of what nobody looks at ends in logs of before `ConditionCleared.unwatched`."""


class Measure(NamedTuple):
    """A measure that was taken: its action, when it was requested and settled, and whether it worked.

    told: why it failed, or what it freed.
    """

    action: str
    wished: Moment
    settled: Moment | None = None
    worked: bool = False
    told: str = ""


class Condition(NamedTuple):
    """A raised condition: since when, in which state (since when), why, and what was tried, oldest first.

    event: the id of the event that raised it last; seen: when that was, and its evidence was true; failing: when it was
    first seen wrong, if once was not enough to raise it.
    """

    since: Moment
    state: str
    changed: Moment
    evidence: str
    value: float | None = None
    bound: float | None = None
    measures: tuple[Measure, ...] = ()
    event: str = ""
    seen: Moment | None = None
    failing: Moment | None = None

    @property
    def began(self) -> Moment:
        """When it was first seen wrong, which is what people are told; rules count from when it was raised."""
        return self.failing or self.since

    def age(self, now: Moment) -> str:
        """How long ago it was first seen, in words: for how long it was wrong is not known if no daemon ran meanwhile."""
        return f"first seen {duration_text(now.since(self.began))} ago"

    def described(self, now: Moment) -> str:
        """Its evidence, and how long ago that raised it, if a minute or more."""
        age = now.since(self.seen or self.changed)
        return self.evidence if age < UNITS["m"] else f"{self.evidence}, raised {duration_text(age)} ago"


@dataclass(frozen=True, slots=True)
class Conditions:
    """The conditions that are raised, and what is remembered of others.

    raised: by name; cleared: when others were last cleared (the last 200); began: when those were first seen wrong before;
    answering: open effects that answer one: the condition's name and the measure's place, by effect id;
    tried: when measures were wished in episodes of before (the last 50), by the names in `cleared`;
    last: the measures of the newest of these episodes, as they stood when it was over, likewise;
    unwatched: why nobody looks at it any more, in words, for those of `cleared` of which it is not known that they are over.
    """

    raised: Mapping[str, Condition] = field(default_factory=dict)
    cleared: Mapping[str, Moment] = field(default_factory=dict)
    answering: Mapping[str, tuple[str, int]] = field(default_factory=dict)
    tried: Mapping[str, tuple[Moment, ...]] = field(default_factory=dict)
    last: Mapping[str, tuple[Measure, ...]] = field(default_factory=dict)
    unwatched: Mapping[str, str] = field(default_factory=dict)
    began: Mapping[str, Moment] = field(default_factory=dict)

    def __getitem__(self, name: str) -> Condition | None:
        return self.raised.get(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self.raised)


REMEMBERED = 200
MEASURES = 50
KINDS = frozenset({ConditionRaised.kind, ConditionCleared.kind, Effect.kind, *SETTLING})


def after(state: Conditions, events: Iterable[Event]) -> Conditions:
    """The conditions after more events."""
    events = tuple(events)
    if not state.raised and not state.answering and ConditionRaised.kind not in {one.kind for one in events}:
        return state  # as nearly always: nothing is wrong
    raised, cleared, answering = dict(state.raised), dict(state.cleared), dict(state.answering)
    tried, last, unwatched, began = (
        dict(state.tried),
        dict(state.last),
        dict(state.unwatched),
        dict(state.began),
    )
    for event in events:
        kind, name = event.kind, event.subject
        if kind == Effect.kind:
            _add_measure(raised, answering, event)
        elif kind in SETTLING:
            if place := answering.pop(name, None):
                _settle_measure(raised, place, event)
        elif kind == ConditionRaised.kind:
            raised[name] = _raised_condition(raised.get(name), event)
        elif kind == ConditionCleared.kind and name in raised:
            over = raised.pop(name)
            measures, began[name] = over.measures, over.began
            answering = {id_: place for id_, place in answering.items() if place[0] != name}
            last.pop(name, None)
            unwatched.pop(name, None)
            cleared.pop(name, None)  # so that the newest is last
            cleared[name] = event.moment
            if words := why_unwatched(event):
                unwatched[name] = words
            if measures:
                last[name] = measures
                tried[name] = (*tried.get(name, ()), *(one.wished for one in measures))[-MEASURES:]
            if len(cleared) > REMEMBERED:
                oldest = next(iter(cleared))
                for past in (cleared, tried, last, unwatched, began):
                    past.pop(oldest, None)
    return Conditions(raised, cleared, answering, tried, last, unwatched, began)


def why_unwatched(cleared: Event) -> str:
    """Why nobody looks at this cleared condition any more, in words; empty if it is over."""
    data = decode_plain(cleared.data)
    evidence = str(data.get("evidence", ""))
    return evidence if data.get("unwatched") or evidence.endswith(UNWATCHED_TEXTS) else ""


def _raised_condition(before: Condition | None, event: Event) -> Condition:
    data, now = decode_plain(event.data), event.moment
    state = str(data.get("state", ""))
    values = (str(data.get("evidence", "")), data.get("value"), data.get("bound"))
    if before is None:
        first = failing_since(event)
        return Condition(now, state, first or now, *values, event=event.id, seen=now, failing=first)
    changed = before.changed if before.state == state else now
    return Condition(before.since, state, changed, *values, before.measures, event.id, now, before.failing)


def failing_since(event: Event) -> Moment | None:
    """When what this event tells of was first seen, if once was not enough."""
    failing = int(decode_plain(event.data).get("failing", 0)) if '"failing"' in event.data else 0
    return event.moment.plus(failing - event.at) if 0 < failing < event.at else None


def _add_measure(raised: dict[str, Condition], answering: dict[str, tuple[str, int]], event: Event) -> None:
    wish = decode_plain_effect(event.data)
    if not wish.get("survival"):
        return  # whatever its params say, it is no step of survival's
    name = str(wish.get("params", {}).get(FOR, ""))
    condition = raised.get(name)
    if condition is not None and len(condition.measures) < MEASURES:
        answering[event.id] = name, len(condition.measures)
        measure = Measure(str(wish["action"]), event.moment)
        raised[name] = condition._replace(measures=(*condition.measures, measure))


def _settle_measure(raised: dict[str, Condition], place: tuple[str, int], event: Event) -> None:
    name, number = place
    condition = raised.get(name)
    if condition is None or number >= len(condition.measures):
        return
    data, worked = decode_plain(event.data), event.kind == EffectAcked.kind
    freed = data.get("result", {}).get("bytes")  # by a successful measure, if its result says so
    told = str(data.get("error") or data.get("why") or freed_text(freed))
    done = condition.measures[number]._replace(settled=event.moment, worked=worked, told=told)
    measures = (*condition.measures[:number], done, *condition.measures[number + 1 :])
    raised[name] = condition._replace(measures=measures)
