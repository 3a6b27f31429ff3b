"""Projections, the core's own ones, the values of all at one row of the log, and the snapshot for a tick."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import cached_property
from typing import Any, Generic, TypeVar

from pydantic import TypeAdapter
from pydantic_core import to_jsonable_python

from pulse_core.model.batches import in_batches
from pulse_core.model.event import Event
from pulse_core.model.moment import Moment
from pulse_core.model.vitals import Window
from pulse_core.projections import conditions, control, effects, engine, logs, notices, processes
from pulse_core.projections.conditions import Conditions
from pulse_core.projections.control import Control
from pulse_core.projections.effects import Effects, Phase
from pulse_core.projections.engine import Engine
from pulse_core.projections.logs import Logs
from pulse_core.projections.notices import Notices
from pulse_core.projections.processes import Processes, ProcessHistory
from pulse_core.settings.settings import Settings

T = TypeVar("T")
AT_ONCE = 64
"""Values in mappings and lists that are encoded together."""
_NONE: Mapping[str, Any] = {}


def encode_values(values: object) -> str:
    """Values of projections as JSON text, in any mapping.

    They are mostly named tuples, which json's own encoder takes as they come; pydantic's looks up each one's type.
    """
    return _ENCODER.encode(values)


def encode_in_pieces(value: object, levels: int = 3) -> Iterator[str]:
    """The text of `encode_values` in pieces: values of mappings down to so many levels, each by itself, there and in
    lists and iterators some at once.

    What encodes much at once holds up the loop: to write 1,000 followed logs takes 15 ms. Each value by itself takes
    three times as long in all.
    """
    if is_dataclass(value):
        value = _fields(value)
    if levels > 1 and isinstance(value, Mapping):
        yield "{"
        for number, (key, one) in enumerate(value.items()):
            text = encode_values(key) + ":" if isinstance(key, str) else encode_values({key: 0})[1:-2]
            yield "," + text if number else text
            yield from encode_in_pieces(one, levels - 1)
        yield "}"
    elif levels and isinstance(value, Mapping):
        some = in_batches(value.items(), AT_ONCE, lambda item: _length(item[1]), AT_ONCE)
        yield from _joined("{}", (encode_values(dict(batch)) for batch in some))
    elif levels and isinstance(value, list | Iterator):
        yield from _joined("[]", map(encode_values, in_batches(value, AT_ONCE, _length, AT_ONCE)))
    else:
        yield encode_values(value)


def _joined(ends: str, texts: Iterable[str]) -> Iterator[str]:
    """The pieces of one mapping or list, made of the texts of several."""
    yield ends[0]
    for number, text in enumerate(texts):
        yield "," * bool(number) + text[1:-1]
    yield ends[1]


def _length(value: object) -> int:
    return max(1, len(value)) if isinstance(value, Mapping | list | tuple) else 1


def _fields(value: object) -> Any:
    if is_dataclass(value):
        return {one.name: getattr(value, one.name) for one in fields(value)}
    if isinstance(value, frozenset):  # whose order is another one in each process
        return sorted(value)
    return to_jsonable_python(value, fallback=str)


_ENCODER = json.JSONEncoder(separators=(",", ":"), default=_fields)


@dataclass(frozen=True, eq=False)
class StateProjection(Generic[T]):
    """What one fold needs: raise `version` whenever the same events would give another value, and old checkpoints go.

    name: under which it is checkpointed and shown; type: of its value, which is empty when made without arguments;
    kinds: the events that may change it; `after` also gets others, and ignores them; is_small: whether a value is stored
    with each tick that emitted effects; what is too large for that is folded anew where such a tick is read.
    """

    name: str
    version: int
    type: type[T]
    kinds: frozenset[str]
    after: Callable[[T, Iterable[Event]], T]
    is_small: Callable[[T], bool] = lambda value: True

    @cached_property
    def empty(self) -> T:
        """The value before the first event."""
        return self.type()

    def dump(self, value: T) -> str:
        """The value as JSON text; without its schema, which takes a daemon long to build and much memory."""
        return encode_values(value)

    def load(self, text: str | bytes) -> T:
        """The value from `dump`'s text; raises ValueError if it is not one.

        Most have nothing of their kinds to remember: no adapter is built for these, which takes long and much memory.
        """
        is_empty = text in (self._empty_text, self._empty_text.encode())
        return self.empty if is_empty else self._adapter.validate_json(text)

    @cached_property
    def _empty_text(self) -> str:
        return self.dump(self.empty)

    @cached_property
    def _adapter(self) -> TypeAdapter[T]:
        return TypeAdapter(self.type)


EFFECTS = StateProjection("effects", 7, Effects, effects.KINDS, effects.after)
PROCESSES = StateProjection("processes", 24, Processes, processes.KINDS, processes.after)
CONTROL = StateProjection("control", 9, Control, control.KINDS, control.after)
CONDITIONS = StateProjection("conditions", 10, Conditions, conditions.KINDS, conditions.after)
NOTICES = StateProjection("notices", 11, Notices, notices.KINDS, notices.after)
LOGS = StateProjection("logs", 4, Logs, logs.KINDS, logs.after, lambda value: value.entries <= logs.FEW)
ENGINE = StateProjection("engine", 10, Engine, engine.KINDS, engine.after)

CORE: tuple[StateProjection[Any], ...] = (EFFECTS, PROCESSES, CONTROL, CONDITIONS, NOTICES, LOGS, ENGINE)


@dataclass(frozen=True, slots=True)
class State:
    """The projections up to row `seq`, and after `provisional` more events that are not recorded yet.

    The core's own projections are fields, since every tick reads them; `parts` holds the values of the capabilities'
    projections by name, which `of` returns with their type. broken: those of them that raised, with what: their values are
    those of before, for good, and no checkpoint has them.
    """

    seq: int = 0
    effects: Effects = field(default_factory=Effects)
    processes: Processes = field(default_factory=Processes)
    control: Control = field(default_factory=Control)
    conditions: Conditions = field(default_factory=Conditions)
    notices: Notices = field(default_factory=Notices)
    logs: Logs = field(default_factory=Logs)
    engine: Engine = field(default_factory=Engine)
    parts: Mapping[str, Any] = field(default_factory=lambda: _NONE)
    provisional: int = 0
    broken: Mapping[str, str] = field(default_factory=lambda: _NONE)

    def of(self, projection: StateProjection[T]) -> T:
        """The value of this projection; the empty one if nothing of its kinds has happened."""
        name = projection.name
        value: T = getattr(self, name) if name in OWN else self.parts.get(name, projection.empty)
        return value

    @property
    def restarts_begun(self) -> Mapping[str, str]:
        """The names of the processes that are being restarted at this moment, by the effects that do it."""
        return {
            effect: name
            for effect, name in self.processes.restarting.items()
            if (one := self.effects.open.get(effect)) and one.phase is Phase.EXECUTING
        }

    def is_alike(self, other: "State") -> bool:
        """Whether no event of the kinds of any projection lies between the two."""
        return self.parts is other.parts and all(getattr(self, name) is getattr(other, name) for name in OWN)

    def with_values(self, values: Mapping[str, Any], seq: int, provisional: int = 0) -> "State":
        """A copy at another row, with these values by the names of their projections."""
        if values.keys() <= OWN:  # as nearly always
            return replace(self, **values, seq=seq, provisional=provisional)
        own = {name: value for name, value in values.items() if name in OWN}
        parts = {**self.parts, **{name: value for name, value in values.items() if name not in OWN}}
        return replace(self, **own, parts=parts, seq=seq, provisional=provisional)


OWN = frozenset(one.name for one in fields(State)) - {"seq", "parts", "provisional", "broken"}
"""The names of the core's own projections."""

CurrentState = Callable[[], State]
"""Returns the state as of now, with what is provisional."""

NO_WINDOW = Window()


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What rules see: the moment, the settings, the last minute of every watcher, and the projections of the log."""

    tick: int
    now: Moment
    settings: Settings = field(default_factory=Settings)
    windows: Mapping[str, Window] = field(default_factory=dict)
    state: State = field(default_factory=State)
    own: Mapping[str, Any] = field(default_factory=dict)
    """The values of the engine's own projections by name; only the engine's rules see them."""

    @property
    def effects(self) -> Effects:
        """Open effects and counts."""
        return self.state.effects

    @property
    def control(self) -> Control:
        """Paused or not."""
        return self.state.control

    @property
    def conditions(self) -> Conditions:
        """What is wrong with the machine at this moment."""
        return self.state.conditions

    @property
    def notices(self) -> Notices:
        """The notices that were sent."""
        return self.state.notices

    @property
    def silences(self) -> Any:
        """The silences; authors used this name before capabilities had projections of their own."""
        return self.state.parts["silences"]

    @property
    def logs(self) -> Logs:
        """Matching lines of the followed logs."""
        return self.state.logs

    @property
    def engine(self) -> Engine:
        """The engine's commit and its failures."""
        return self.state.engine

    def of(self, projection: StateProjection[T]) -> T:
        """The value of a capability's projection, with its type."""
        return self.state.of(projection)

    def process(self, name: str) -> ProcessHistory:
        """The recorded history of a guarded process."""
        return self.state.processes[name]

    def window(self, key: str) -> Window:
        """The last minute of a watcher's samples; empty if there are none."""
        return self.windows.get(key, NO_WINDOW)

    def has_looked(self, key: str) -> bool:
        """Whether the newest sample of this watcher is of the daemon that runs: of what was well or wrong before it nothing
        is known now."""
        started, last = self.control.started, self.window(key).last
        return started is None or (
            last is not None and self.now.since(last.moment) <= self.now.since(started)
        )

    def samples(self, *keys: str) -> tuple[int, ...]:
        """Ids of the newest samples of these watchers (of all, if none is named)."""
        windows = (self.window(key) for key in keys) if keys else self.windows.values()
        return tuple(window.last.id for window in windows if window.last)
