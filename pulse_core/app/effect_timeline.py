"""Effects as the log tells them: found by what people call them, each with its events from the wish to the outcome."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Any

from pulse_core.model.errors import Ambiguous, PulseError, UnknownName, hint
from pulse_core.model.event import Event
from pulse_core.model.json_answers import EffectJson
from pulse_core.model.moment import iso
from pulse_core.model.names import RESTART_PROCESS, STOP_PROCESS, subjects_of
from pulse_core.model.payload import decode_plain
from pulse_core.model.short_ids import CUT
from pulse_core.ports.readers import EventQuery, EventReader
from pulse_core.projections.conditions import FOR
from pulse_core.projections.effects import MOVES, OPEN, Phase, decode_plain_effect

SHORTEST = 6
"""Characters at the end of an id that may stand for it: the beginning is shared by all of one minute."""

ABOUT_PROCESS = ("restart-process:{}", "stop-process:{}", "notify:flapping:{}")
"""The keys of effects that concern a process."""


@dataclass(frozen=True)
class EffectTimeline:
    """An effect's own event, and the events about it in the order of the log."""

    wish: Event
    about: Sequence[Event]

    @cached_property
    def data(self) -> Mapping[str, Any]:
        """What is wished: action, key, params, reason …"""
        data: Mapping[str, Any] = self.wish.spelled()["data"] or {}
        return data

    @cached_property
    def steps(self) -> Sequence[tuple[Event, Phase]]:
        """The events that moved it, each with the phase it led to; what the table doesn't allow did nothing."""
        phase, steps = Phase.PENDING, []
        for row in self.about:
            if (moved := MOVES.get((phase, row.kind))) is not None:
                phase = moved
                steps.append((row, phase))
        return steps

    @property
    def phase(self) -> Phase:
        """Where it stands."""
        return self.steps[-1][1] if self.steps else Phase.PENDING

    @property
    def is_open(self) -> bool:
        """Whether nothing has settled it."""
        return self.phase in OPEN

    @property
    def outcome(self) -> Event | None:
        """The event that settled it, or None."""
        return None if self.is_open else self.steps[-1][0]

    @property
    def attempts(self) -> int:
        """How often it was begun."""
        return sum(phase is Phase.EXECUTING for _, phase in self.steps)

    @property
    def next_try(self) -> str | None:
        """When its next attempt is due, in ISO 8601, if the last one failed."""
        if self.phase is not Phase.RETRYING:
            return None
        failed = self.steps[-1][0]
        return iso(failed.at + decode_plain(failed.data).get("retry_us", 0))

    @property
    def took_us(self) -> int | None:
        """From the wish to its outcome, microseconds; None while it is open."""
        return between(self.wish, self.outcome) if self.outcome else None

    def spelled(self) -> EffectJson:
        """The effect as JSON values."""
        outcome = self.outcome.spelled() if self.outcome else None
        wish = self.wish.spelled()
        return {
            "id": self.wish.id,
            "seq": self.wish.seq,
            "at": wish["at"],
            "actor": self.wish.actor,
            "cause": self.wish.cause,
            "action": self.data.get("action"),
            "key": self.wish.subject,
            "params": self.data.get("params", {}),
            "reason": self.data.get("reason", ""),
            "damaged": self.data.get("$damaged"),
            "rule": self.data.get("rule", ""),
            "tick": self.data.get("tick"),
            "state": self.phase.value,
            "attempts": self.attempts,
            "next_try": self.next_try,
            "took_ms": None if self.took_us is None else self.took_us / 1000,
            "outcome": outcome["data"] if outcome else None,
        }


def effect_timeline(log: EventReader, wish: Event) -> EffectTimeline:
    """The timeline of the effect that this event wished."""
    return EffectTimeline(wish, list(log.events(EventQuery(subject=wish.id, since_seq=wish.seq))))


def between(early: Event, late: Event) -> int:
    """Microseconds from one event to a later one."""
    return late.moment.since(early.moment)


def last_effects(log: EventReader, count: int) -> Sequence[Event]:
    """The newest effects, newest first."""
    return list(log.events(EventQuery(kinds=("effect",)), limit=count, newest_first=True))


def effect_called(log: EventReader, name: str, known: Callable[[], Iterable[str]] | None = None) -> Event:
    """The effect of this id, or of the only one that begins or ends so. Raises PulseError if there is none, or several.

    known: the names of what else may have been meant.
    """
    try:
        row = log.event(name)
        if row.kind == "effect":
            return row
    except (UnknownName, Ambiguous):
        pass
    effects = log.events(EventQuery(kinds=("effect",)), newest_first=True) if name else iter(())
    name, is_end = name.removeprefix(CUT), name.startswith(CUT) or len(name) >= SHORTEST
    meant = (row for row in effects if row.id.startswith(name) or (is_end and row.id.endswith(name)))
    found = list(islice(meant, 4))
    if not found:
        what = f"process, condition or effect {name!r}{hint(name, known())}" if known else f"effect {name!r}"
        of_rules = "; what a rule does: upulse explain" if known else ""
        raise PulseError(
            f"no {what}; give an id, its beginning, at least {SHORTEST} characters of its end, or a key: "
            f"upulse effect list --all{of_rules}"
        )
    if len(found) > 1:
        raise PulseError(
            f"{name!r} may mean several effects ({', '.join(row.id for row in found)}); write more of it"
        )
    return found[0]


def newest_about(log: EventReader, keys: Iterable[str]) -> Event | None:
    """The newest effect with one of these keys, or None."""
    found = (
        next(log.events(EventQuery(subject=key, kinds=("effect",)), limit=1, newest_first=True), None)
        for key in keys
    )
    return max((row for row in found if row), key=lambda row: row.seq, default=None)


def newest_for(log: EventReader, condition: str) -> Event | None:
    """The newest effect that answers this condition, or tells of it: a param names it, or its key does."""
    effects = log.events(EventQuery(kinds=("effect",)), newest_first=True) if condition else iter(())
    return next((row for row in effects if _is_for(row, condition)), None)


def _is_for(row: Event, condition: str) -> bool:
    if condition in subjects_of(row.subject):
        return True
    params = decode_plain_effect(row.data).get("params") if FOR in row.data else None
    return isinstance(params, Mapping) and params.get(FOR) == condition


def effect_meant(log: EventReader, name: str) -> Event:
    """The newest effect with this key, or else the one of this id."""
    return newest_about(log, [name]) or effect_called(log, name)


def effect_named(log: EventReader, name: str) -> Event | None:
    """The effect of exactly this id, or the newest one of this key; None if there is none."""
    with suppress(UnknownName, Ambiguous):
        if (row := log.event(name)).id == name and row.kind == "effect":
            return row
    return newest_about(log, [name])


def effect_about(log: EventReader, name: str) -> Event | None:
    """The newest effect about a process or a condition, or None; rules of an engine use keys of their own."""
    keyed = newest_about(log, [key.format(name) for key in ABOUT_PROCESS])
    since = EventQuery(kinds=("effect",), since_seq=keyed.seq if keyed else 0)
    effects = log.events(since, newest_first=True) if name else iter(())
    return next((row for row in effects if _is_of_process(row, name)), keyed) or newest_for(log, name)


def _is_of_process(row: Event, process: str) -> bool:
    wish = decode_plain_effect(row.data) if '"process"' in row.data else {}
    params = wish.get("params")
    is_ours = isinstance(params, Mapping) and params.get("process") == process
    return is_ours and wish.get("action") in (RESTART_PROCESS, STOP_PROCESS)
