"""All built-in projections at one row of the log, and the fold that moves them on together."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, NamedTuple

from pydantic import TypeAdapter

from pulse_core.model.event import Event
from pulse_core.projections import control, effects, processes
from pulse_core.projections.control import Control
from pulse_core.projections.effects import Effects
from pulse_core.projections.processes import Processes


@dataclass(frozen=True, slots=True)
class Projected:
    """What the log says, computed up to row `seq`, and `supposed` events more that are not recorded yet."""

    seq: int = 0
    effects: Effects = field(default_factory=Effects)
    processes: Processes = field(default_factory=Processes)
    control: Control = field(default_factory=Control)
    supposed: int = 0


class Projection(NamedTuple):
    """One fold: raise `version` whenever the same events would give another value, and old checkpoints go."""

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
    "effects": Projection(1, Effects, effects.KINDS, effects.after),
    "processes": Projection(1, Processes, processes.KINDS, processes.after),
    "control": Projection(1, Control, control.KINDS, control.after),
}
WANTED = frozenset().union(*(projection.kinds for projection in BUILT_IN.values()))


def fold(state: Projected, events: Sequence[Event], upto: int | None = None) -> Projected:
    """The projections after more events (in order, none of them folded before); `upto`: the row reached."""
    seq = upto if upto is not None else events[-1].seq if events else state.seq
    wanted = [event for event in events if event.kind in WANTED]
    if not wanted:
        return Projected(seq, state.effects, state.processes, state.control)
    parts = {name: _part(projection, getattr(state, name), wanted) for name, projection in BUILT_IN.items()}
    return Projected(seq, **parts)


def _part(projection: Projection, state: object, events: Sequence[Event]) -> Any:
    mine = [event for event in events if event.kind in projection.kinds]
    return projection.after(state, mine) if mine else state
