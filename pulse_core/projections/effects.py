"""Open effects, and counts of settled ones by outcome. The life cycle of an effect is the table `MOVES`."""

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import islice
from typing import NamedTuple, TypeVar

from pulse_core.model.event import Event
from pulse_core.model.json_types import Json
from pulse_core.model.kinds import (
    Effect,
    EffectAcked,
    EffectAttemptFailed,
    EffectCancelled,
    EffectCancelRequested,
    EffectExecuting,
    EffectFailed,
    EffectUnknown,
)
from pulse_core.model.moment import US_PER_SECOND, Moment
from pulse_core.model.names import NOTIFY, OUTWARD, SETTLING
from pulse_core.model.payload import decode_plain
from pulse_core.model.text_cache import cached_by_text

T = TypeVar("T")
REMEMBERED = 1_000
MINUTE = 60 * US_PER_SECOND


class Phase(StrEnum):
    """Where an effect stands."""

    PENDING = "pending"
    EXECUTING = "executing"
    RETRYING = "retrying"
    ACKED = "acked"
    FAILED = "failed"
    UNKNOWN = "unknown"
    CANCELLED = "cancelled"


MOVES: Mapping[tuple[Phase, str], Phase] = {
    (Phase.PENDING, EffectExecuting.kind): Phase.EXECUTING,
    (Phase.PENDING, EffectCancelled.kind): Phase.CANCELLED,
    (Phase.PENDING, EffectFailed.kind): Phase.FAILED,
    (Phase.EXECUTING, EffectExecuting.kind): Phase.EXECUTING,
    (Phase.EXECUTING, EffectAttemptFailed.kind): Phase.RETRYING,
    (Phase.EXECUTING, EffectAcked.kind): Phase.ACKED,
    (Phase.EXECUTING, EffectFailed.kind): Phase.FAILED,
    (Phase.EXECUTING, EffectUnknown.kind): Phase.UNKNOWN,
    (Phase.EXECUTING, EffectCancelled.kind): Phase.CANCELLED,
    (Phase.RETRYING, EffectExecuting.kind): Phase.EXECUTING,
    (Phase.RETRYING, EffectCancelled.kind): Phase.CANCELLED,
    (Phase.RETRYING, EffectFailed.kind): Phase.FAILED,
}
"""Every legal transition; an event that would cause another one is ignored."""

OPEN = frozenset({Phase.PENDING, Phase.EXECUTING, Phase.RETRYING})


@cached_by_text
def decode_effect(data: str) -> Effect:
    """Decode an effect's data; cached, since several folds decode the same one."""
    return Effect.model_validate_json(data)


@cached_by_text
def decode_plain_effect(data: str) -> Mapping[str, Json]:
    """Decode an effect's data as plain JSON, cached for all folds; empty if it was redacted.

    The text itself is never searched: that would find matches in the params, too.
    """
    return decode_plain(data)


class Source(StrEnum):
    """Who requested an effect."""

    SURVIVAL = "survival"
    CAPABILITIES = "capabilities"
    RULES = "rules"
    PEOPLE = "people"


@cached_by_text  # each effect that a rule adds is counted with all that are open
def source_of(data: str) -> Source:
    """Who requested the effect with this data: rules of survival, of a capability or of others, or people."""
    wish = decode_plain_effect(data)
    if wish.get("survival"):
        return Source.SURVIVAL
    if wish.get("tick") is None:  # only rules say a tick
        return Source.PEOPLE
    return Source.CAPABILITIES if wish.get("capability") else Source.RULES


class OpenEffect(NamedTuple):
    """An effect that nothing has settled yet.

    event: the `effect` event; moment: when it entered its phase; attempt: how often it was begun;
    retry_us: how long after `moment` the next attempt is due, and error: why the last one failed, while it waits for that;
    cancel: who requested its cancellation, and why if that was said, or empty.
    """

    event: Event
    phase: Phase
    moment: Moment
    attempt: int = 0
    retry_us: int = 0
    cancel: str = ""
    error: str = ""

    @property
    def id(self) -> str:
        """The effect's id."""
        return self.event.id

    @property
    def action(self) -> str:
        """The requested action, as `restart-process`; empty if it was redacted."""
        return str(decode_plain_effect(self.event.data).get("action", ""))

    @property
    def params(self) -> Mapping[str, Json]:
        """The requested params, which can be read even where `wish` can't: a newer version may have recorded it."""
        params: Mapping[str, Json] = decode_plain_effect(self.event.data).get("params", {})
        return params

    @property
    def commit(self) -> str:
        """The commit of the engine whose rule requested it; empty if no rule of an engine did."""
        return str(decode_plain_effect(self.event.data).get("commit", ""))

    @property
    def wish(self) -> Effect:
        """The requested effect, decoded at the first access."""
        return decode_effect(self.event.data)


def gives_way(before: OpenEffect, wish: Effect) -> bool:
    """Whether an open effect gives way to this one: a notice of a topic to one of the same key, unless it is being sent.

    One that failed before is sent to the addresses that failed, and gives way even then. One of no topic gives way only
    once it has failed: nothing bounds how often a rule wishes for it.
    """
    if not before.action == wish.action == NOTIFY or before.event.subject != wish.key:
        return False
    if before.phase is Phase.EXECUTING:
        return before.attempt > 1
    return before.phase is Phase.RETRYING or wish.key.startswith(f"{NOTIFY}:")


@dataclass(frozen=True, slots=True)
class Effects:
    """Open effects in the order of the log, the index of their keys, and counts of the settled ones.

    settled_at: when a key was last settled (the last 1,000 keys that survival requested, `of_survival`, which no others can
    crowd out, and of those the last 1,000); acted: when rules emitted effects in the
    last minute before the newest one (at most 1,000): `acted` those of survival that are not outward, less those that only
    start a dead process, which are `started` (less the first of each key in a minute); `delegated` those of capabilities,
    `wished` those of all others; last_tick: the highest tick that emitted one.
    """

    open: Mapping[str, OpenEffect] = field(default_factory=dict)
    keys: Mapping[str, str] = field(default_factory=dict)
    settled_at: Mapping[str, Moment] = field(default_factory=dict)
    of_survival: tuple[str, ...] = ()
    acted: tuple[Moment, ...] = ()
    started: tuple[Moment, ...] = ()
    wished: tuple[Moment, ...] = ()
    delegated: tuple[Moment, ...] = ()
    last_tick: int = 0
    acked: int = 0
    failed: int = 0
    unknown: int = 0
    cancelled: int = 0

    def by_key(self, key: str) -> OpenEffect | None:
        """The open effect with this key, if there is one."""
        return self.open.get(self.keys.get(key, ""))

    def excludes(self, wish: Effect) -> bool:
        """Whether an open effect of its key keeps this one from being recorded."""
        before = self.by_key(wish.key)
        return before is not None and not gives_way(before, wish)

    def count(self, *phases: Phase) -> int:
        """How many open effects are in one of these phases."""
        return sum(effect.phase in phases for effect in self.open.values())

    def pause_left(self, key: str, pause_us: int, now: Moment, since: Moment | None = None) -> int:
        """Microseconds of a pause that are left after an effect of this key was settled.

        since: one that was settled before then did something else, and needs no pause.
        """
        settled = self.settled_at.get(key)
        if settled is None or (since and now.since(settled) > now.since(since)):
            return 0
        return max(0, pause_us - now.since(settled))


KINDS = frozenset(
    {Effect.kind, EffectExecuting.kind, EffectAttemptFailed.kind, EffectCancelRequested.kind, *SETTLING}
)


class _Step:
    """A phase as folds pass through it; next: where each kind of event leads from here, none if it is settled."""

    __slots__ = ("next", "phase")

    def __init__(self, phase: Phase) -> None:
        self.phase = phase
        self.next: dict[str, _Step] = {}


STEPS: Mapping[Phase, _Step] = {phase: _Step(phase) for phase in Phase}
for (_was, _kind), _then in MOVES.items():
    STEPS[_was].next[_kind] = STEPS[_then]
_PENDING, _EXECUTING = STEPS[Phase.PENDING], STEPS[Phase.EXECUTING]
_EFFECT = Effect.kind

_Entry = tuple[Event, _Step, Event | OpenEffect, int, int, str, str]
"""An open effect while events are folded: as `OpenEffect`, with the event that has moved it instead of the moment."""


_UNMADE = OpenEffect(Event(0, "", 0, "", 0, "", "", "", "", None, ""), Phase.PENDING, Moment(0, "", 0))


def after(state: Effects, events: Iterable[Event]) -> Effects:
    """The effects after more events."""
    table, touched = _EffectTable(state), False
    for event in events:
        kind = event.kind
        if kind == _EFFECT:
            table.opened(event)
        elif event.subject in table.open:
            table.moved(event.subject, event)
        else:
            continue
        touched = True
    return table.state() if touched else state


class _EffectTable:
    """A private working copy for one fold: dictionaries are copied once for a batch, not once for an event.

    A start without checkpoints folds the whole log through here. So payloads are read as plain JSON, effects that are
    settled in the same batch stay plain tuples, and moments and an `OpenEffect` are made only of what stays.
    """

    def __init__(self, before: Effects) -> None:
        self.before = before
        self.open = dict(before.open)
        self.entries: dict[str, _Entry] = {}  # those of this batch; each has its place in `open` already
        self.keys = dict(before.keys)
        self.settled: dict[str, Event] = {}
        self.of_survival = set[str]()  # of those
        self.acted = deque(before.acted, REMEMBERED)
        self.started = deque(before.started, REMEMBERED)
        self.wished = deque(before.wished, REMEMBERED)
        self.delegated = deque(before.delegated, REMEMBERED)
        self.last_tick = before.last_tick
        self.counts = dict.fromkeys(SETTLING, 0)

    def opened(self, event: Event) -> None:
        wish = decode_plain_effect(event.data)
        if not wish:
            return  # its data is gone, so no executor can carry it out
        id_, key = event.id, event.subject
        if key in self.keys:
            return  # the writer never lets this happen; a log from elsewhere might
        self.open[id_], self.entries[id_] = _UNMADE, (event, _PENDING, event, 0, 0, "", "")
        self.keys[key] = id_
        # Only rules say a tick, and only their effects count against the budget.
        if (tick := wish.get("tick")) is not None:
            self.last_tick = max(self.last_tick, tick)
            self._acted(event, wish)

    def _acted(self, event: Event, wish: Mapping[str, Json]) -> None:
        if not wish.get("survival"):
            _note(self.delegated if wish.get("capability") else self.wished, event.moment)
        elif wish["action"] not in OUTWARD:
            is_start = wish.get("params", {}).get("only_start")
            if not is_start:
                _note(self.acted, event.moment)
            elif not self._is_first(event):
                _note(self.started, event.moment)

    def _is_first(self, event: Event) -> bool:
        """Whether its key was not settled within a minute; where many die at once, each could use up what all may have."""
        newest, before = self.settled.get(event.subject), self.before.settled_at.get(event.subject)
        settled = newest.moment if newest else before
        return settled is None or event.moment.since(settled) >= MINUTE

    def moved(self, id_: str, event: Event) -> None:
        if (entry := self.entries.pop(id_, None)) is None:
            one = self.open[id_]
            entry = (one.event, STEPS[one.phase], one, one.attempt, one.retry_us, one.cancel, one.error)
        effect, step, since, attempt, retry_us, cancel, error = entry
        then = step.next.get(event.kind)
        if then is _EXECUTING:
            self.entries[id_] = (effect, then, event, attempt + 1, 0, cancel, "")
        elif then is None:
            asked = _canceller(event) if event.kind == EffectCancelRequested.kind else cancel
            self.entries[id_] = (effect, step, since, attempt, retry_us, asked, error)
        elif then.next:
            data = decode_plain(event.data)
            failed = data.get("retry_us", 0), cancel, str(data.get("error", ""))
            self.entries[id_] = (effect, then, event, attempt, *failed)
        else:
            self.counts[event.kind] += 1
            key = effect.subject
            del self.open[id_], self.keys[key]
            self.settled.pop(key, None)  # so that the newest is last
            self.settled[key] = event
            if decode_plain_effect(effect.data).get("survival"):
                self.of_survival.add(key)

    def _opened(self) -> Mapping[str, OpenEffect]:
        for id_, (effect, step, since, attempt, retry_us, cancel, error) in self.entries.items():
            self.open[id_] = OpenEffect(effect, step.phase, since.moment, attempt, retry_us, cancel, error)
        return self.open

    def state(self) -> Effects:
        before = self.before
        settled_at, of_survival = self._settled_at()
        return replace(
            before,
            open=self._opened(),
            keys=self.keys,
            settled_at=settled_at,
            of_survival=of_survival,
            acted=tuple(self.acted),
            started=tuple(self.started),
            wished=tuple(self.wished),
            delegated=tuple(self.delegated),
            last_tick=self.last_tick,
            acked=before.acked + self.counts[EffectAcked.kind],
            failed=before.failed + self.counts[EffectFailed.kind],
            unknown=before.unknown + self.counts[EffectUnknown.kind],
            cancelled=before.cancelled + self.counts[EffectCancelled.kind],
        )

    def _settled_at(self) -> tuple[Mapping[str, Moment], tuple[str, ...]]:
        before = self.before
        if not self.settled:
            return before.settled_at, before.of_survival
        settled_at, of_survival = dict(before.settled_at), {*before.of_survival, *self.of_survival}
        for key, event in self.settled.items():
            settled_at.pop(key, None)  # so that the newest is last
            settled_at[key] = event.moment
        others = [key for key in settled_at if key not in of_survival]
        own = [key for key in settled_at if key in of_survival]
        for key in (*others[:-REMEMBERED], *own[:-REMEMBERED]):
            del settled_at[key]
        return settled_at, tuple(own[-REMEMBERED:])


def newest(found: dict[str, T], most: int = REMEMBERED) -> dict[str, T]:
    """The last of a mapping, at most so many; the others are taken out of it."""
    for key in tuple(islice(found, max(0, len(found) - most))):
        del found[key]
    return found


def _canceller(event: Event) -> str:
    why = decode_plain(event.data).get("why")
    return f"{event.actor} ({why})" if why else event.actor


def _note(lately: deque[Moment], now: Moment) -> None:
    """Pruned at each event, not at each batch: a fold must not depend on how it was cut."""
    while lately and now.since(lately[0]) >= MINUTE:
        lately.popleft()
    lately.append(now)
