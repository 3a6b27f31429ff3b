"""The life of an effect as its events tell it, by the table that the daemon uses."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from pulse_adapters.sqlite.event_reader import SqliteEventReader
from pulse_core.model.event import Event
from pulse_core.ports.readers import EventQuery
from pulse_core.projections.effects import MOVES, OPEN, Phase


@dataclass(frozen=True)
class Life:
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
    def took_us(self) -> int | None:
        """From the wish to its outcome, microseconds; None while it is open."""
        return between(self.wish, self.outcome) if self.outcome else None

    def told(self) -> dict[str, Any]:
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
            "took_ms": None if self.took_us is None else self.took_us / 1000,
            "outcome": outcome["data"] if outcome else None,
        }


def life(log: SqliteEventReader, wish: Event) -> Life:
    """The life of the effect that this event wished."""
    return Life(wish, list(log.events(EventQuery(subject=wish.id, since_seq=wish.seq))))


def between(early: Event, late: Event) -> int:
    """Microseconds from one event to a later one."""
    return late.moment.since(early.moment)
