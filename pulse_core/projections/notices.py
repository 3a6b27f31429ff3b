"""Notices by topic, so that none is sent twice and each is followed by one that it is over.

An unsettled notice gives way to a newer one of its topic: an address that takes nothing for days keeps none from the
others, and gets the newest of each topic, with how many were left out for it, once it takes messages again.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from pulse_core.model.event import Event
from pulse_core.model.kinds import (
    Effect,
    EffectAcked,
    EffectAttemptFailed,
    EffectCancelled,
    EffectCancelRequested,
    EffectExecuting,
    EffectFailed,
)
from pulse_core.model.moment import US_PER_SECOND, Moment
from pulse_core.model.names import NOTIFY, SETTLING
from pulse_core.model.payload import decode_plain
from pulse_core.projections.effects import Source, decode_plain_effect, source_of

PREFIX = f"{NOTIFY}:"
TOPICS = 1_000
HOUR = 3_600 * US_PER_SECOND
MESSAGES = 10_000
DEFAULT_SEVERITY = "warning"
"""Of notices of earlier versions, and of those that say nothing else."""


class Notice(NamedTuple):
    """A topic with notices: when first and last, how often, whether it is over by the last one, and how severe.

    of_rules: whether a rule of an engine or plugin told the last one.
    """

    first: Moment
    last: Moment
    times: int = 1
    over: bool = False
    severity: str = DEFAULT_SEVERITY
    of_rules: bool = False


class ReplacedNotices(NamedTuple):
    """Notices that gave way to a newer one of their topic: when the first was requested, UTC microseconds; how many there
    were by severity, and how many of them each address got; interrupted: whether one may have arrived elsewhere, too."""

    first: int = 0
    by_severity: Mapping[str, int] = {}
    by_address: Mapping[str, int] = {}
    interrupted: bool = False

    def plus(self, severity: str, addresses: Iterable[str], *, interrupted: bool) -> "ReplacedNotices":
        """These and one more, which these addresses got. interrupted: whether a delivery of it was."""
        by_severity, by_address = Counter(self.by_severity), Counter(self.by_address)
        by_severity[severity] += 1
        by_address.update(addresses)
        return ReplacedNotices(
            self.first, dict(by_severity), dict(by_address), self.interrupted or interrupted
        )


@dataclass(frozen=True, slots=True)
class Notices:
    """By topic, the newest at the end (1,000; the oldest of rules go first, then of those that are over);
    open: topics of unsettled notices by effect id;
    failed: when the last attempt of an unsettled one failed, by effect id; reached: when one was last delivered;
    sent: when each message of the last hour before the newest one was begun (at most 10,000), less those that only
    bring to a further address what another one got, and those that reached none. Notices that go out as one message begin
    at the same moment; sent_by_rules: those messages that hold notices of authors' rules alone; of_rules: effect ids of
    the unsettled ones of these; begun: when each unsettled one was, by effect id; unsure: those of `sent` that are under
    way and have reached nobody so far; sent_to: the addresses that an unsettled one has reached, by effect id;
    replaced: by topic, those that gave way to the unsettled one; interrupted: effect ids of unsettled ones of which a
    delivery was."""

    of: Mapping[str, Notice] = field(default_factory=dict)
    open: Mapping[str, str] = field(default_factory=dict)
    failed: Mapping[str, Moment] = field(default_factory=dict)
    reached: Moment | None = None
    sent: tuple[Moment, ...] = ()
    sent_by_rules: tuple[Moment, ...] = ()
    of_rules: frozenset[str] = frozenset()
    begun: Mapping[str, Moment] = field(default_factory=dict)
    unsure: tuple[Moment, ...] = ()
    sent_to: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    replaced: Mapping[str, ReplacedNotices] = field(default_factory=dict)
    interrupted: frozenset[str] = frozenset()

    def __getitem__(self, topic: str) -> Notice | None:
        return self.of.get(topic)

    def __iter__(self) -> Iterator[str]:
        return iter(self.of)


TRIED = frozenset({EffectAcked.kind, EffectFailed.kind})
"""The ends that tell which addresses a notice has reached."""
KINDS = frozenset(
    {Effect.kind, EffectExecuting.kind, EffectAttemptFailed.kind, EffectCancelRequested.kind, *SETTLING}
)


def after(state: Notices, events: Iterable[Event]) -> Notices:
    """The notices after more events."""
    events = tuple(events)
    if not _concerns(state, events):
        return state  # as nearly always: these effects do something else
    of, open_, failed = dict(state.of), dict(state.open), dict(state.failed)
    reached, sent, begun, unsure = state.reached, state.sent, dict(state.begun), state.unsure
    sent_to, replaced, interrupted = dict(state.sent_to), dict(state.replaced), set(state.interrupted)
    by_rules, of_rules = state.sent_by_rules, set(state.of_rules)
    for event in events:
        if event.kind == Effect.kind:
            if _is_notice(event):
                _add_notice(of, open_, event)
                if source_of(event.data) is Source.RULES:
                    of_rules.add(event.id)
        elif event.subject not in open_:
            continue
        elif event.kind == EffectCancelRequested.kind:
            is_begun = event.subject in begun or event.subject in sent_to or event.subject in interrupted
            told = of.get(open_[event.subject])
            # A rollback takes it back before anybody got it; what a person takes back is not to be told again.
            if event.actor == "pulse" and not is_begun and told and told.times == 1 and not told.over:
                del of[open_[event.subject]]
        elif event.kind == EffectAttemptFailed.kind:
            failed[event.subject] = event.moment
            began = begun.pop(event.subject, None)
            if got := decode_plain(event.data).get("result", {}).get("sent_to"):
                sent_to[event.subject] = (*sent_to.get(event.subject, ()), *got)
                unsure = _without(unsure, began)
            elif began in unsure and began not in begun.values():
                sent, unsure = _without(sent, began), _without(unsure, began)
        elif event.kind == EffectExecuting.kind:
            if event.subject in begun:  # what a crash interrupted may have arrived
                interrupted.add(event.subject)
                unsure = _without(unsure, begun[event.subject])
            begun[event.subject] = now = event.moment
            failed.pop(event.subject, None)
            # What has reached an address is no new message, nor is a notice that is part of the newest one.
            if event.subject not in sent_to and (not sent or sent[-1] != now):
                # Pruned at each event, not at each batch: a fold must not depend on how it was cut.
                sent = (*_in_last_hour(sent, now), now)
                unsure = (*unsure, now)
                if event.subject in of_rules:
                    by_rules = (*_in_last_hour(by_rules, now), now)
            if event.subject not in of_rules and event.subject not in sent_to:
                by_rules = _without(by_rules, now)
        elif event.kind in SETTLING:
            topic, got = open_.pop(event.subject), sent_to.pop(event.subject, ())
            broken_off = event.subject in interrupted or event.subject in begun
            interrupted.discard(event.subject)
            of_rules.discard(event.subject)
            if event.kind == EffectCancelled.kind and decode_plain(event.data).get("replaced"):
                last = of.get(topic) or Notice(event.moment, event.moment)
                earlier = replaced.get(topic) or ReplacedNotices(last.last.at)
                replaced[topic] = earlier.plus(last.severity, got, interrupted=broken_off)
            else:
                replaced.pop(topic, None)
            failed.pop(event.subject, None)
            began = begun.pop(event.subject, None)
            got = decode_plain(event.data).get("result", {}).get("sent_to")
            if got and event.kind == EffectAcked.kind:
                reached = event.moment
            if got or event.kind not in TRIED:  # one that was cancelled may have arrived
                unsure = _without(unsure, began)
            elif began in unsure and began not in begun.values():
                sent, unsure = _without(sent, began), _without(unsure, began)
    return Notices(
        of=of,
        open=open_,
        failed=failed,
        reached=reached,
        sent=sent,
        sent_by_rules=by_rules,
        of_rules=frozenset(of_rules),
        begun=begun,
        unsure=unsure,
        sent_to=sent_to,
        replaced=replaced,
        interrupted=frozenset(interrupted),
    )


def _in_last_hour(moments: tuple[Moment, ...], now: Moment) -> Iterable[Moment]:
    return (then for then in moments[1 - MESSAGES :] if now.since(then) < HOUR)


def _without(moments: tuple[Moment, ...], left_out: Moment | None) -> tuple[Moment, ...]:
    """The moments less this one."""
    return tuple(then for then in moments if then != left_out) if left_out in moments else moments


def _concerns(state: Notices, events: Sequence[Event]) -> bool:
    """Whether one of these events requests a notice, or belongs to one that is open."""
    effect = Effect.kind
    if state.open and any(event.subject in state.open for event in events):
        return True
    return any(_is_notice(event) for event in events if event.kind == effect)


def _is_notice(event: Event) -> bool:
    """Whether this effect is a notice."""
    return decode_plain_effect(event.data).get("action") == NOTIFY


def _add_notice(of: dict[str, Notice], open_: dict[str, str], event: Event) -> None:
    open_[event.id] = topic = event.subject.removeprefix(PREFIX)
    if topic == event.subject:
        return  # a notice of other rules, with another key
    before, now = of.pop(topic, None), event.moment
    params = decode_plain_effect(event.data).get("params", {})
    over, severity = (
        bool(params.get("over") or params.get("once")),
        str(params.get("severity", DEFAULT_SEVERITY)),
    )
    of_rules = source_of(event.data) is Source.RULES
    if before is None or before.over:
        of[topic] = Notice(now, now, over=over, severity=severity, of_rules=of_rules)
    else:
        times = before.times + 1
        of[topic] = before._replace(last=now, times=times, over=over, severity=severity, of_rules=of_rules)
    if len(of) > TOPICS:  # what stands is not forgotten for what rules tell, nor for what is over
        del of[min(of, key=lambda known: (not of[known].of_rules, not of[known].over))]
