"""All built-in projections at one row of the log, and the fold that moves them on together."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, NamedTuple

from pydantic import TypeAdapter

from pulse_core.model.event import Event
from pulse_core.projections import (
    conditions,
    control,
    effects,
    engine,
    logs,
    notices,
    processes,
    silences,
)
from pulse_core.projections.conditions import Conditions
from pulse_core.projections.control import Control
from pulse_core.projections.effects import Effects
from pulse_core.projections.engine import Engine
from pulse_core.projections.logs import Logs
from pulse_core.projections.notices import Notices
from pulse_core.projections.processes import Processes
from pulse_core.projections.silences import Silences


@dataclass(frozen=True, slots=True)
class Projected:
    """What the log says, computed up to row `seq`, and `supposed` events more that are not recorded yet."""

    seq: int = 0
    effects: Effects = field(default_factory=Effects)
    processes: Processes = field(default_factory=Processes)
    control: Control = field(default_factory=Control)
    conditions: Conditions = field(default_factory=Conditions)
    notices: Notices = field(default_factory=Notices)
    silences: Silences = field(default_factory=Silences)
    logs: Logs = field(default_factory=Logs)
    engine: Engine = field(default_factory=Engine)
    supposed: int = 0


class Projection(NamedTuple):
    """One fold: raise `version` whenever the same events would give another value, and old checkpoints go.

    kinds: the events that may change it; `after` is given others too, and passes over them.
    """

    version: int
    state: type[Any]
    kinds: frozenset[str]
    after: Callable[[Any, Iterable[Event]], Any]

    def dump(self, state: object) -> str:
        """The state as JSON text."""
        return _adapter(self).dump_json(state).decode()

    def load(self, text: str) -> object:
        """The state from `dump`'s text."""
        return _adapter(self).validate_json(text)


@cache
def _adapter(projection: Projection) -> TypeAdapter[Any]:
    return TypeAdapter(projection.state)


BUILT_IN: Mapping[str, Projection] = {
    "effects": Projection(3, Effects, effects.KINDS, effects.after),
    "processes": Projection(4, Processes, processes.KINDS, processes.after),
    "control": Projection(1, Control, control.KINDS, control.after),
    "conditions": Projection(3, Conditions, conditions.KINDS, conditions.after),
    "notices": Projection(2, Notices, notices.KINDS, notices.after),
    "silences": Projection(1, Silences, silences.KINDS, silences.after),
    "logs": Projection(2, Logs, logs.KINDS, logs.after),
    "engine": Projection(4, Engine, engine.KINDS, engine.after),
}
WANTED = frozenset().union(*(projection.kinds for projection in BUILT_IN.values()))


def fold(state: Projected, events: Sequence[Event], upto: int | None = None) -> Projected:
    """The projections after more events (in order, none of them folded before); `upto`: the row reached."""
    seq = upto if upto is not None else events[-1].seq if events else state.seq
    wanted = [event for event in events if event.kind in WANTED]
    if not wanted:
        return replace(state, seq=seq, supposed=0)
    kinds = {event.kind for event in wanted}
    parts = {
        name: projection.after(getattr(state, name), wanted)
        for name, projection in BUILT_IN.items()
        if not projection.kinds.isdisjoint(kinds)
    }
    return replace(state, seq=seq, supposed=0, **parts)
