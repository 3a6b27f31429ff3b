"""Effects that are open, and how many were settled how. The life of an effect is the table `MOVES`."""

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import lru_cache
from typing import NamedTuple

from pulse_core.model.event import Event
from pulse_core.model.kinds import (
    SETTLING,
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
from pulse_core.model.payload import REDACTED

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
"""Every legal move; what is not here does not happen, and an event that claims it is passed over."""

OPEN = frozenset({Phase.PENDING, Phase.EXECUTING, Phase.RETRYING})


@lru_cache(maxsize=4096)
def wish_in(data: str) -> Effect:
    """The wish in an effect's data; several folds ask for the same one."""
    return Effect.model_validate_json(data)


class OpenEffect(NamedTuple):
    """An effect that nothing has settled yet.

    event: the `effect` event; moment: when it entered its phase; attempt: how often it was begun;
    retry_us: how long after `moment` the next attempt is due; cancel: who wants it cancelled, or nothing.
    """

    event: Event
    phase: Phase
    moment: Moment
    attempt: int = 0
    retry_us: int = 0
    cancel: str = ""

    @property
    def id(self) -> str:
        """The effect's id."""
        return self.event.id

    @property
    def wish(self) -> Effect:
        """What is wished, decoded when first asked for."""
        return wish_in(self.event.data)


@dataclass(frozen=True, slots=True)
class Effects:
    """Open effects in the order of the log, the index of their keys, and counts of the settled ones.

    settled_at: when a key was last settled (the last 1,000 keys); acted: when rules emitted effects in the
    last minute before the newest one (at most 1,000); last_tick: the highest tick that emitted one.
    """

    open: Mapping[str, OpenEffect] = field(default_factory=dict)
    keys: Mapping[str, str] = field(default_factory=dict)
    settled_at: Mapping[str, Moment] = field(default_factory=dict)
    acted: tuple[Moment, ...] = ()
    last_tick: int = 0
    acked: int = 0
    failed: int = 0
    unknown: int = 0
    cancelled: int = 0

    def by_key(self, key: str) -> OpenEffect | None:
        """The open effect with this key, if there is one."""
        return self.open.get(self.keys.get(key, ""))

    def count(self, *phases: Phase) -> int:
        """How many open effects are in one of these phases."""
        return sum(effect.phase in phases for effect in self.open.values())


KINDS = frozenset(
    {Effect.kind, EffectExecuting.kind, EffectAttemptFailed.kind, EffectCancelRequested.kind, *SETTLING}
)


def after(state: Effects, events: Iterable[Event]) -> Effects:
    """The effects after more events."""
    desk = _Desk(state)
    for event in events:
        if event.kind in KINDS:
            desk.take(event)
    return desk.state() if desk.touched else state


class _Desk:
    """A private working copy for one fold: dictionaries are copied once for a batch, not once for an event."""

    def __init__(self, before: Effects) -> None:
        self.before = before
        self.touched = False
        self.open = dict(before.open)
        self.keys = dict(before.keys)
        self.settled_at = dict(before.settled_at)
        self.acted = deque(before.acted, REMEMBERED)
        self.last_tick = before.last_tick
        self.counts = {Phase.ACKED: 0, Phase.FAILED: 0, Phase.UNKNOWN: 0, Phase.CANCELLED: 0}

    def take(self, event: Event) -> None:
        self.touched = True
        if event.kind == Effect.kind:
            self._opened(event)
        elif effect := self.open.get(event.subject):
            self._moved(effect, event)

    def _opened(self, event: Event) -> None:
        if event.data == REDACTED:
            return  # what it wished is gone, so nobody can do it any more
        if event.subject in self.keys:
            return  # the writer never lets this happen; a log from elsewhere might
        self.open[event.id] = OpenEffect(event, Phase.PENDING, event.moment)
        self.keys[event.subject] = event.id
        if '"tick":' in event.data:  # only rules say a tick, and only their effects count against the budget
            wish = wish_in(event.data)
            self.last_tick = max(self.last_tick, wish.tick or 0)
            if wish.action != "notify":
                # Pruned at each event, not at each batch: a fold must not depend on how it was cut.
                now = event.moment
                while self.acted and now.since(self.acted[0]) >= MINUTE:
                    self.acted.popleft()
                self.acted.append(now)

    def _moved(self, effect: OpenEffect, event: Event) -> None:
        if event.kind == EffectCancelRequested.kind:
            self.open[effect.id] = effect._replace(cancel=event.actor)
            return
        phase = MOVES.get((effect.phase, event.kind))
        if phase is None:
            return
        if phase in OPEN:
            self.open[effect.id] = self._onward(effect, phase, event)
            return
        self.counts[phase] += 1
        del self.open[effect.id], self.keys[effect.event.subject]
        self.settled_at.pop(effect.event.subject, None)  # so that the newest is last
        self.settled_at[effect.event.subject] = event.moment
        if len(self.settled_at) > REMEMBERED:
            del self.settled_at[next(iter(self.settled_at))]

    @staticmethod
    def _onward(effect: OpenEffect, phase: Phase, event: Event) -> OpenEffect:
        if phase is Phase.EXECUTING:
            return OpenEffect(effect.event, phase, event.moment, effect.attempt + 1, 0, effect.cancel)
        failed = event.payload
        retry_us = failed.retry_us if isinstance(failed, EffectAttemptFailed) else 0
        return OpenEffect(effect.event, phase, event.moment, effect.attempt, retry_us, effect.cancel)

    def state(self) -> Effects:
        before = self.before
        return replace(
            before,
            open=self.open,
            keys=self.keys,
            settled_at=self.settled_at,
            acted=tuple(self.acted),
            last_tick=self.last_tick,
            acked=before.acked + self.counts[Phase.ACKED],
            failed=before.failed + self.counts[Phase.FAILED],
            unknown=before.unknown + self.counts[Phase.UNKNOWN],
            cancelled=before.cancelled + self.counts[Phase.CANCELLED],
        )
