"""The engine's commits for the survival rules: what is in force, its probation, and failures since the promote."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from pulse_core.model.event import Event
from pulse_core.model.home_status import DisabledStatus
from pulse_core.model.kinds import (
    DaemonStopped,
    Effect,
    EffectAcked,
    EffectCancelled,
    EngineChangeStarted,
    EngineDisabled,
    EngineEnabled,
    EnginePromoted,
    EngineRolledBack,
    ErrorReported,
    PromoteRefused,
    PromoteRequested,
    RollbackRequested,
    RuleQuarantined,
)
from pulse_core.model.moment import US_PER_SECOND, Moment, iso
from pulse_core.model.names import OUTWARD, ROLLBACK_ENGINE, SETTLING
from pulse_core.model.payload import decode_plain
from pulse_core.projections.effects import decode_plain_effect

FAILURES = EARLIER = 100
RULE, PROJECTION = "rule:", "projection:"
"""The prefixes of an error's subject if a rule or a projection has raised it."""
MOST_AILING, LONGEST = 400, 200
AILING = 20 * 60 * US_PER_SECOND
"""How long a fault counts as present after it was last recorded: lasting ones are recorded more often."""
_PLACE = re.compile(r"\(([^()\n]+):\d+\)")
_NUMBER = re.compile(r"\b\w*\d[\w.-]*")


def fault_words(message: str) -> str:
    """A fault's message without what differs each time: numbers, and words with a digit, as ids have it."""
    return _NUMBER.sub("#", message)


def fault_identity(subject: str, message: str, ended: bool = False) -> str:
    """What the same fault of the same code has in common: the file (the first line), whose it is, and its words.

    Empty if the message names no place: such a fault may be of any file.
    """
    places = _PLACE.findall(message)
    whose = f"the end of {subject}" if ended else subject
    return f"{places[-1]}\n{whose}\n{fault_words(message)[:LONGEST]}" if places else ""


def action_identity(key: str) -> str:
    """The same for a failure of a survival action, which is of no file that a promote could change."""
    return f"\naction\n{key[:LONGEST]}"


@dataclass(frozen=True, slots=True)
class Engine:
    """commit: the one in force, promoted at `promoted` and watched for `watch_us`; earlier: those before it, oldest
    first, through which rollbacks go back one by one (the last 100);
    errors: when rules and projections raised errors since then (the last 100); breakdowns: when its watchers and
    executors failed by their own fault, or one of its hosts ended (likewise); failures: when survival's actions failed
    since then, with none in between that worked (likewise), but not for programs that the machine cannot start; ailing:
    the identities of the faults that were recorded lately, failures of survival's actions among them, and when;
    excused: those that came before the promote already, from files that it left as they were, and count for none of the
    three; trying: the keys of survival's open actions, by effect id; asked: when a rollback was last wished;
    while_failing: whether that was for `failures`, and ends with them; rolled_back: when one was done, and rolled_back_why,
    if nobody had asked for it; good: the last
    commit that was in force for the whole time that it was watched; quarantined: rules that are passed over, and why;
    replaced: the commit that the one in force took the place of; requests: what people asked for and nobody answered,
    by the event's id; started: the ids of those that a daemon began to carry out and did not leave by a stop;
    disabled: since when a person wants none of its code run, or None; disabled_by and disabled_why: who, and why;
    disabled_seq: the row that says so, after which a change must be asked for to end it."""

    commit: str = ""
    earlier: tuple[str, ...] = ()
    promoted: Moment | None = None
    watch_us: int = 0
    errors: tuple[Moment, ...] = ()
    breakdowns: tuple[Moment, ...] = ()
    ailing: Mapping[str, Moment] = field(default_factory=dict)
    excused: tuple[str, ...] = ()
    failures: tuple[Moment, ...] = ()
    trying: Mapping[str, str] = field(default_factory=dict)
    asked: Moment | None = None
    while_failing: bool = False
    rolled_back: Moment | None = None
    rolled_back_why: str = ""
    good: str = ""
    quarantined: Mapping[str, str] = field(default_factory=dict)
    replaced: str = ""
    requests: Mapping[str, Event] = field(default_factory=dict)
    started: tuple[str, ...] = ()
    disabled: Moment | None = None
    disabled_by: str = ""
    disabled_why: str = ""
    disabled_seq: int = 0

    @property
    def previous(self) -> str:
        """The commit before the one in force, or empty."""
        return self.earlier[-1] if self.earlier else ""

    @property
    def remedy(self) -> str:
        """The command with which a person ends what the commit in force does, in words; empty if there is none."""
        if self.previous:
            return "go back with: upulse rollback"
        return "leave your rules out with: upulse engine disable" if self.commit else ""

    def later_than(self, commit: str) -> tuple[str, ...]:
        """The commits that were in force after this one, and are before the one in force; empty if it is none of these."""
        if commit not in self.earlier:
            return ()
        return self.earlier[len(self.earlier) - self.earlier[::-1].index(commit) :]

    def has_stayed(self, now: Moment) -> bool:
        """Whether the probation of the commit in force is over."""
        return self.promoted is None or now.since(self.promoted) >= self.watch_us

    def last_good(self, now: Moment) -> str:
        """The last commit that was in force for the whole time that it was watched, or is so by now; else empty."""
        return self.commit if self.commit and self.has_stayed(now) else self.good

    def is_on_probation(self, now: Moment) -> bool:
        """Whether errors count against the commit in force, since there is one to go back to."""
        return bool(self.previous) and not self.has_stayed(now)

    def is_taken_back(self, commit: str) -> bool:
        """Whether this commit was the last one in force, and a rollback has replaced it."""
        is_rollback = self.rolled_back is not None and self.promoted in (None, self.rolled_back)
        return is_rollback and commit == self.replaced and commit != self.commit

    def is_excused(self, subject: str, message: str, ended: bool = False) -> bool:
        """Whether the same fault of the same code came before the promote already."""
        return fault_identity(subject, message, ended) in self.excused

    def disabled_status(self) -> DisabledStatus | None:
        """Who disabled it, since when and why, as JSON values; None if nobody did."""
        if self.disabled is None:
            return None
        return {"since": iso(self.disabled.at), "by": self.disabled_by, "why": self.disabled_why}


COMMIT_CHANGES = frozenset({EnginePromoted.kind, EngineRolledBack.kind})
REQUESTS = frozenset({PromoteRequested.kind, RollbackRequested.kind})
ANSWERS = frozenset({*COMMIT_CHANGES, PromoteRefused.kind})
OWN = frozenset(
    {
        *REQUESTS,
        *ANSWERS,
        EngineChangeStarted.kind,
        EngineDisabled.kind,
        EngineEnabled.kind,
        RuleQuarantined.kind,
    }
)
KINDS = frozenset({Effect.kind, *SETTLING, ErrorReported.kind, DaemonStopped.kind, *OWN})


def after(state: Engine, events: Iterable[Event]) -> Engine:
    """The engine after more events."""
    events = tuple(events)
    if not state.commit and not state.started and OWN.isdisjoint([event.kind for event in events]):
        return state  # there is no engine
    trying, failures = dict(state.trying), state.failures
    for event in events:
        kind = event.kind
        if kind == Effect.kind:
            if state.commit and (wish := decode_plain_effect(event.data)).get("survival"):
                if wish["action"] == ROLLBACK_ENGINE:
                    params = wish.get("params")
                    while_failing = isinstance(params, Mapping) and bool(params.get("while_failing"))
                    state = replace(state, asked=event.moment, while_failing=while_failing)
                elif wish["action"] not in OUTWARD:
                    trying[event.id] = str(wish["key"])
        elif kind in SETTLING:
            if key := trying.pop(event.subject, None):
                if kind == EffectAcked.kind:
                    state, failures = _forget(state, action_identity(key)), ()
                    state = replace(state, asked=None, while_failing=False) if state.while_failing else state
                elif kind != EffectCancelled.kind:
                    state = _note(state, identity := action_identity(key), event.moment)
                    is_counted = state.promoted is not None and identity not in state.excused
                    if is_counted and not decode_plain(event.data).get("not_startable"):
                        failures = (*failures[1 - FAILURES :], event.moment)
        elif kind == ErrorReported.kind:
            state = _count_error(state, event)
        elif kind == RuleQuarantined.kind:
            data = decode_plain(event.data)
            if data.get("commit") == state.commit:
                quarantined = {**state.quarantined, event.subject: str(data.get("why", ""))}
                state = replace(state, quarantined=quarantined)
        elif kind in REQUESTS:
            state = replace(state, requests={**state.requests, event.id: event})
        elif kind == EngineChangeStarted.kind:
            if event.subject in state.requests:
                state = replace(state, started=(*state.started, event.subject))
        elif kind == DaemonStopped.kind:
            state = replace(state, started=())
        elif kind == EngineDisabled.kind:
            why = str(decode_plain(event.data).get("why", ""))
            state = replace(
                state,
                disabled=event.moment,
                disabled_by=event.actor,
                disabled_why=why,
                disabled_seq=event.seq,
            )
        elif kind == EngineEnabled.kind:
            state = _enable(state)
        elif kind == EnginePromoted.kind:
            state, failures = _promote(state, event), ()
        elif kind == EngineRolledBack.kind:
            state, failures = _roll_back(state, event), ()
        if kind in COMMIT_CHANGES and (asked := state.requests.get(event.cause or "")):
            state = _enable(state) if asked.seq > state.disabled_seq else state
        if kind in ANSWERS and event.cause in state.requests:
            left = {id_: asked for id_, asked in state.requests.items() if id_ != event.cause}
            state = replace(state, requests=left, started=tuple(id_ for id_ in state.started if id_ in left))
    return replace(state, trying=trying, failures=failures)


def _enable(state: Engine) -> Engine:
    return replace(state, disabled=None, disabled_by="", disabled_why="", disabled_seq=0)


def _count_error(state: Engine, event: Event) -> Engine:
    data = decode_plain(event.data)
    if "commit" not in data and not event.subject.startswith(RULE):
        return state  # it says nothing of an engine
    if not state.commit or data.get("commit", state.commit) != state.commit:
        return state  # an error of another commit
    ended, message = bool(data.get("ended", False)), str(data.get("message", ""))
    if identity := fault_identity(event.subject, message, ended):
        state = _note(state, identity, event.moment)
    if state.promoted is None or identity in state.excused:
        return state
    more = (event.moment,) * min(1 + int(data.get("repeats", 0)), FAILURES)
    if event.subject.startswith((RULE, PROJECTION)) and not ended:
        return replace(state, errors=(*state.errors, *more)[-FAILURES:])
    return replace(state, breakdowns=(*state.breakdowns, *more)[-FAILURES:])


def _note(state: Engine, identity: str, moment: Moment) -> Engine:
    others = {one: at for one, at in state.ailing.items() if one != identity}
    return replace(state, ailing=dict([*others.items(), (identity, moment)][-MOST_AILING:]))


def _forget(state: Engine, identity: str) -> Engine:
    if identity not in (*state.ailing, *state.excused):
        return state
    ailing = {one: at for one, at in state.ailing.items() if one != identity}
    return replace(state, ailing=ailing, excused=tuple(one for one in state.excused if one != identity))


def _promote(state: Engine, event: Event) -> Engine:
    data = decode_plain(event.data)
    previous, now, changed = str(data.get("previous", "")), event.moment, data.get("changed")
    # If the previous commit is on probation, a second promote would excuse that commit's own failures.
    before = (
        state.excused
        if state.is_on_probation(now)
        else [one for one, at in state.ailing.items() if now.since(at) <= AILING]
    )
    return replace(
        state,
        commit=event.subject,
        earlier=(*state.earlier, previous)[-EARLIER:] if previous else (),
        promoted=now,
        rolled_back_why="",
        watch_us=int(data.get("watch_us", 0)),
        errors=(),
        breakdowns=(),
        excused=tuple(one for one in before if _is_unchanged(one.partition("\n")[0], changed)),
        asked=None,
        while_failing=False,
        good=state.last_good(now),
        quarantined={},
        replaced=previous,
    )


def _is_unchanged(file: str, changed: object) -> bool:
    """Whether a promote left a file as it was, or what is of no file. changed: None if nobody knows."""
    return not file or (isinstance(changed, list) and file not in changed)


def _roll_back(state: Engine, event: Event) -> Engine:
    """A commit that was good is so again at once; one that never passed its probation is watched like a promote."""
    data, earlier = decode_plain(event.data), state.earlier
    to = str(data.get("to", ""))
    if to in earlier:
        earlier = earlier[: len(earlier) - 1 - earlier[::-1].index(to)]  # before its newest occurrence
    return replace(
        state,
        commit=event.subject,
        earlier=earlier,
        promoted=None if to and to == state.good else event.moment,
        errors=(),
        breakdowns=(),
        ailing={},
        excused=(),
        asked=None,
        while_failing=False,
        rolled_back=event.moment,
        rolled_back_why="" if data.get("asked_by", "pulse") != "pulse" else str(data.get("why", "")),
        quarantined={},
        replaced=str(data.get("rejected", "")),
    )
