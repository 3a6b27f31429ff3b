"""What the events of one daemon's life tell of durations: of restarts and of effects, and how many rollbacks there were."""

from collections.abc import Iterable

from pulse_core.model.event import Event
from pulse_core.model.histogram import DurationHistogram
from pulse_core.model.home_status import SinceStartStatus
from pulse_core.model.kinds import (
    Effect,
    EffectAttemptFailed,
    EffectExecuting,
    EngineRolledBack,
    ProcessDied,
    ProcessStopped,
    ProcessStopRequested,
    ProcessUp,
    SettingsLoaded,
)
from pulse_core.model.moment import Moment
from pulse_core.model.names import SETTLING
from pulse_core.model.payload import decode_plain
from pulse_core.projections.effects import decode_plain_effect
from pulse_core.projections.state import State

BOUNDS_US = (
    10_000, 50_000, 100_000, 500_000, 1_000_000, 5_000_000, 10_000_000, 30_000_000, 60_000_000, 300_000_000, 900_000_000,
)  # fmt: skip
MOST_ACTIONS, OTHER = 100, "other"
"""Actions that are told apart, since an engine may name any number; and what the others are told as."""
STOPS = frozenset({ProcessStopped.kind, ProcessStopRequested.kind})
ENDS = frozenset({EffectAttemptFailed.kind, *SETTLING})


class EventDurations:
    """Measures from the event that begins something to the one that ends it; what began before this daemon counts, too.

    A death that is meant is none: that of a process that is stopped on purpose, restarted by request, or taken out of the
    settings while it is down. Nor is one of which nobody knows when it was, while no daemon ran.
    """

    def __init__(self) -> None:
        self.rollbacks = 0
        self.restarts = DurationHistogram(BOUNDS_US)
        self.effects: dict[str, DurationHistogram] = {}
        self._dead: dict[str, Moment] = {}
        self._actions: dict[str, str] = {}
        self._begun: dict[str, Moment] = {}

    def begin(self, state: State) -> None:
        """Take over what is open: the effects that are not settled, and the processes that have died."""
        self._actions = {id_: one.action for id_, one in state.effects.open.items()}
        for name, history in state.processes.of.items():
            if history.down and not (history.stop or history.intended or history.last_seen):
                self._dead[name] = history.down

    def on_events(self, events: Iterable[Event]) -> None:
        """Measure what these begin and end."""
        for event in events:
            kind, subject = event.kind, event.subject
            if kind == Effect.kind:
                self._actions[event.id] = str(decode_plain_effect(event.data).get("action", ""))
            elif kind == EffectExecuting.kind:
                self._begun[subject] = event.moment
            elif kind in ENDS:
                self._end_attempt(event)
            elif kind == ProcessDied.kind:
                data = decode_plain(event.data)
                if not data.get("intended") and not data.get("last_seen"):
                    self._dead.setdefault(subject, event.moment)
            elif kind in STOPS:
                self._dead.pop(subject, None)
            elif kind == SettingsLoaded.kind:
                for name in decode_plain(event.data).get("gone", ()):
                    self._dead.pop(name, None)
            elif kind == ProcessUp.kind:
                if died := self._dead.pop(subject, None):
                    self.restarts.add(event.moment.since(died))
            elif kind == EngineRolledBack.kind:
                self.rollbacks += 1

    def _end_attempt(self, event: Event) -> None:
        action = self._actions.get(event.subject, "")
        if event.kind != EffectAttemptFailed.kind:
            self._actions.pop(event.subject, None)
        if began := self._begun.pop(event.subject, None):
            name = action if action in self.effects or len(self.effects) < MOST_ACTIONS else OTHER
            self.effects.setdefault(name, DurationHistogram(BOUNDS_US)).add(event.moment.since(began))

    def report(self) -> SinceStartStatus:
        """As JSON values."""
        return {
            "rollbacks": self.rollbacks,
            "restarts": self.restarts.spelled(),
            "effects": {action: one.spelled() for action, one in self.effects.items()},
        }
