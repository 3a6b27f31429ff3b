"""Folds all projections together, and catches up those whose checkpoints stand at different rows."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from pulse_core.model.errors import describe_error
from pulse_core.model.event import Checkpoint, Event
from pulse_core.model.text import one_line
from pulse_core.projections.state import OWN, State, StateProjection

LONGEST_FAULT = 300


class Gap(NamedTuple):
    """Events that some projections still have to fold: those of these kinds after one row, up to another one."""

    since: int
    upto: int
    kinds: frozenset[str]


class Fold:
    """These projections as one fold over the log. kinds: the events that may change any of them; start: the
    state before the first event."""

    def __init__(self, projections: Iterable[StateProjection[Any]]) -> None:
        self.projections: Mapping[str, StateProjection[Any]] = {one.name: one for one in projections}
        self.kinds = frozenset[str]().union(*(one.kinds for one in self.projections.values()))
        self._parts = {name: one.empty for name, one in self.projections.items() if name not in OWN}
        self.start = State().with_values(self._parts, 0)

    @property
    def versions(self) -> dict[str, int]:
        """The version of each fold by name."""
        return {name: one.version for name, one in self.projections.items()}

    def __call__(self, state: State, events: Sequence[Event], upto: int | None = None) -> State:
        """The state after more events (in order, none of them folded before); `upto`: the row reached.

        Nothing in it is provisional. A projection without events of its kinds is not called, so one more of them
        costs a tick nothing.
        """
        seq = upto if upto is not None else events[-1].seq if events else state.seq
        if not state.parts.keys() >= self._parts.keys():
            state = state.with_values({**self._parts, **state.parts}, state.seq)
        return (
            advance(state, self.projections.values(), events, seq) if events else state.with_values({}, seq)
        )

    def dump(self, state: State) -> dict[str, str]:
        """Each projection's value as JSON text, by name."""
        return {name: one.dump(state.of(one)) for name, one in self.projections.items()}

    def load(self, texts: Mapping[str, str], seq: int, provisional: int = 0) -> State:
        """The state from `dump`'s texts; raises ValueError or KeyError if one of them is none, or missing."""
        values = {name: one.load(texts[name]) for name, one in self.projections.items()}
        return self.start.with_values(values, seq, provisional)

    def resume(self, *kept: Mapping[str, Checkpoint], upto: int | None = None) -> "CatchUp":
        """Continue from the furthest checkpoint of each projection, no further than row `upto`.

        Only checkpoints of this log may be given. One of another version of its fold, or that can't be read, is none:
        its projection starts anew, and the others do not.
        """
        found = {name: _furthest(one, kept, upto) for name, one in self.projections.items()}
        rows = {name: row for name, (row, _) in found.items()}
        values = {name: value for name, (_, value) in found.items()}
        return CatchUp(self, rows, self.start.with_values(values, max(rows.values(), default=0)))


class CatchUp:
    """Projections that stand at different rows, brought to the furthest of these: the caller reads the log for one of
    its `gaps` after the other, and has it `take` the events; then `state` is complete."""

    def __init__(self, fold: Fold, rows: Mapping[str, int], state: State) -> None:
        self.state = state
        self._fold, self._rows = fold, dict(rows)
        self._behind: Sequence[StateProjection[Any]] = ()

    def gaps(self) -> Iterator[Gap]:
        """The gaps to read and take, one after the other; none if all stand at one row."""
        while len(rows := sorted(set(self._rows.values()))) > 1:
            since, upto = rows[:2]
            names = [name for name, row in self._rows.items() if row == since]
            self._behind = [self._fold.projections[name] for name in names]
            yield Gap(since, upto, frozenset[str]().union(*(one.kinds for one in self._behind)))
            self._rows.update(dict.fromkeys(names, upto))

    def take(self, events: Sequence[Event]) -> None:
        """Fold events of the gap, in order, into those that lack them."""
        self.state = advance(self.state, self._behind, events, self.state.seq)


def advance(state: State, some: Iterable[StateProjection[Any]], events: Sequence[Event], seq: int) -> State:
    """The state at another row, with the events folded into those of the projections that have their kinds.

    Survival needs none of a capability: one that raises is passed over from then on, and named in `broken`. What one of the
    core's own raises is raised, since nothing could go on without it.
    """
    kinds = {event.kind for event in events}
    values, broken = dict[str, Any](), dict(state.broken)
    for one in some:
        if one.name not in broken and not one.kinds.isdisjoint(kinds):
            try:
                values[one.name] = one.after(state.of(one), events)
            except Exception as error:
                if one.name in OWN:
                    raise
                broken[one.name] = one_line(describe_error(error))[:LONGEST_FAULT]
    advanced = state.with_values(values, seq)
    return advanced if len(broken) == len(state.broken) else replace(advanced, broken=broken)


def _furthest(
    projection: StateProjection[Any], kept: Iterable[Mapping[str, Checkpoint]], upto: int | None
) -> tuple[int, Any]:
    """The row and the value of the furthest checkpoint that can be used; the beginning if there is none."""
    found = (checkpoints.get(projection.name) for checkpoints in kept)
    usable = [one for one in found if one and one.version == projection.version]
    for checkpoint in sorted(usable, key=lambda one: one.head.seq, reverse=True):
        if upto is None or checkpoint.head.seq <= upto:
            try:
                return checkpoint.head.seq, projection.load(checkpoint.state)
            except Exception:  # noqa: BLE001 - whatever is wrong with it
                continue  # a cache that can't be read is no cache
    return 0, projection.empty
