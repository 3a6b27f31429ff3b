"""Silences that were added and neither removed nor expired."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from pulse_core.model.durations import UNITS
from pulse_core.model.event import Event
from pulse_core.model.moment import Moment
from pulse_core.model.payload import decode_plain
from pulse_core.model.stored_data import REDACTED
from pulse_core.projections.state import StateProjection
from pulse_core.silences.events import SilenceAdded, SilenceRemoved

LONGEST_US = 36_500 * UNITS["d"]
"""A silence of an old log may be said to hold longer than any date can say."""


class Silence(NamedTuple):
    """What is held back (a pattern of effect keys), since when, for how many microseconds, by whom and why."""

    match: str
    moment: Moment
    expires_us: int
    by: str
    why: str = ""

    def left(self, now: Moment) -> int:
        """Microseconds until it expires; 0 or less once it has."""
        return min(self.expires_us, LONGEST_US) - now.since(self.moment)

    def holds(self, now: Moment) -> bool:
        """Whether it has not expired."""
        return self.left(now) > 0


@dataclass(frozen=True, slots=True)
class Silences:
    """By the id of the event that added it. Expired ones go when another is added to 1, 2, 4, 8 and so on: looking at
    all each time took seconds for thousands."""

    of: Mapping[str, Silence] = field(default_factory=dict)

    def holding(self, now: Moment) -> Mapping[str, Silence]:
        """Those that have not expired, oldest first."""
        return {id_: silence for id_, silence in self.of.items() if silence.holds(now)}


KINDS = frozenset({SilenceAdded.kind, SilenceRemoved.kind})


def after(state: Silences, events: Iterable[Event]) -> Silences:
    """The silences after more events."""
    of = dict(state.of)
    for event in events:
        if event.kind == SilenceRemoved.kind:
            of.pop(event.subject, None)
        elif event.kind == SilenceAdded.kind and event.data != REDACTED:
            data = decode_plain(event.data)
            expires_us, why = int(data["expires_us"]), str(data.get("why", ""))
            added = Silence(event.subject, event.moment, expires_us, event.actor, why)
            if len(of).bit_count() == 1:
                of = dict(Silences(of).holding(event.moment))
            of[event.id] = added
    return Silences(of)


SILENCES = StateProjection("silences", 2, Silences, KINDS, after)
