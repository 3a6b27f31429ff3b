"""The engine's promotes, as far as the survival rules judge them: what is watched, and what failed since."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from pulse_core.model.event import Event
from pulse_core.model.kinds import (
    SETTLING,
    Effect,
    EffectAcked,
    EffectFailed,
    EffectUnknown,
    EnginePromoted,
    EngineRolledBack,
    ErrorReported,
    PromoteRefused,
    PromoteRequested,
    RollbackRequested,
    RuleQuarantined,
)
from pulse_core.model.moment import Moment
from pulse_core.model.payload import REDACTED, plain

FAILURES = 100
ROLLBACK = "rollback-engine"
RULE = "rule:"
"""How the subject of an error begins that a rule has raised."""


@dataclass(frozen=True, slots=True)
class Engine:
    """commit: the one in force, promoted at `promoted` and watched for `watch_us`; previous: the one before;
    errors: when rules raised errors since then (the last 100); failures: when survival's actions failed, with
    none in between that worked (the last 100); trying: survival's open actions, by effect id;
    asked: when a rollback was last wished; rolled_back: when one was done; good: the last commit that was in force
    for the whole time that it was watched; quarantined: rules that are passed over, and why; replaced: the commit that
    the one in force took the place of; requests: what people asked for and nobody answered, by the event's id."""

    commit: str = ""
    previous: str = ""
    promoted: Moment | None = None
    watch_us: int = 0
    errors: tuple[Moment, ...] = ()
    failures: tuple[Moment, ...] = ()
    trying: Mapping[str, str] = field(default_factory=dict)
    asked: Moment | None = None
    rolled_back: Moment | None = None
    good: str = ""
    quarantined: Mapping[str, str] = field(default_factory=dict)
    replaced: str = ""
    requests: Mapping[str, Event] = field(default_factory=dict)

    def has_stayed(self, now: Moment) -> bool:
        """Whether the commit in force has been so for as long as it was to be watched."""
        return self.promoted is None or now.since(self.promoted) >= self.watch_us


TURNS = frozenset({EnginePromoted.kind, EngineRolledBack.kind})
REQUESTS = frozenset({PromoteRequested.kind, RollbackRequested.kind})
ANSWERS = frozenset({*TURNS, PromoteRefused.kind})
OWN = frozenset({*REQUESTS, *ANSWERS, RuleQuarantined.kind})
KINDS = frozenset({Effect.kind, *SETTLING, ErrorReported.kind, *OWN})


def after(state: Engine, events: Iterable[Event]) -> Engine:
    """The engine after more events."""
    events = tuple(events)
    if state.promoted is None and not any(event.kind in OWN for event in events):
        return state  # nothing is being judged
    trying, failures = dict(state.trying), state.failures
    for event in events:
        kind = event.kind
        if kind == Effect.kind:
            if state.promoted is not None and '"survival":true' in event.data:
                state = _wished(state, trying, event)
        elif kind in SETTLING:
            if trying.pop(event.subject, None):
                failures = _settled(failures, event)
        elif kind == ErrorReported.kind:
            if event.subject.startswith(RULE) and state.promoted is not None:
                state = _erred(state, event)
        elif kind == RuleQuarantined.kind:
            state = _quarantined(state, event)
        elif kind in REQUESTS:
            state = replace(state, requests={**state.requests, event.id: event})
        elif kind == EnginePromoted.kind:
            state, failures = _promoted(state, event), ()
        elif kind == EngineRolledBack.kind:
            state, failures = _rolled_back(state, event), ()
        if kind in ANSWERS and event.cause in state.requests:
            left = {id_: asked for id_, asked in state.requests.items() if id_ != event.cause}
            state = replace(state, requests=left)
    return replace(state, trying=trying, failures=failures)


def _wished(state: Engine, trying: dict[str, str], event: Event) -> Engine:
    action = str(plain(event.data).get("action", ""))
    if action == ROLLBACK:
        return replace(state, asked=event.moment)
    if action != "notify":
        trying[event.id] = action
    return state


def _settled(failures: tuple[Moment, ...], event: Event) -> tuple[Moment, ...]:
    if event.kind == EffectAcked.kind:
        return ()
    if event.kind in (EffectFailed.kind, EffectUnknown.kind):
        return (*failures[1 - FAILURES :], event.moment)
    return failures


def _erred(state: Engine, event: Event) -> Engine:
    repeats = int(plain(event.data).get("repeats", 0)) if event.data != REDACTED else 0
    more = (event.moment,) * min(1 + repeats, FAILURES)
    return replace(state, errors=(*state.errors, *more)[-FAILURES:])


def _quarantined(state: Engine, event: Event) -> Engine:
    data = plain(event.data)
    if event.data == REDACTED or data.get("commit") != state.commit:
        return state
    return replace(state, quarantined={**state.quarantined, event.subject: str(data.get("why", ""))})


def _promoted(state: Engine, event: Event) -> Engine:
    data = plain(event.data)
    previous, watch = str(data.get("previous", "")), int(data.get("watch_us", 0))
    return replace(
        state,
        commit=event.subject,
        previous=previous,
        promoted=event.moment,
        watch_us=watch,
        errors=(),
        asked=None,
        good=state.commit if state.commit and state.has_stayed(event.moment) else state.good,
        quarantined={},
        replaced=previous,
    )


def _rolled_back(state: Engine, event: Event) -> Engine:
    return replace(
        state,
        commit=event.subject,
        previous="",
        promoted=None,
        watch_us=0,
        errors=(),
        asked=None,
        rolled_back=event.moment,
        quarantined={},
        replaced=str(plain(event.data).get("rejected", "")) if event.data != REDACTED else "",
    )
