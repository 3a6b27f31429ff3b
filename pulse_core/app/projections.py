"""What the log says, projection by projection, for people and programs."""

from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any, NamedTuple

from pulse_core.app.context import HomeContext
from pulse_core.app.state import snapshot
from pulse_core.composition import FOLD
from pulse_core.model.errors import UnknownName
from pulse_core.model.json_types import Json
from pulse_core.model.moment import Moment, iso
from pulse_core.projections.state import State


class DescribedProjections(NamedTuple):
    """The projections at a moment (UTC microseconds) and a row, as JSON values; and what is not known of them."""

    at: int
    seq: int
    parts: Mapping[str, Json]
    caveats: Sequence[str]

    def spelled(self, part: str | None = None) -> Json:
        """All of them, or one."""
        return self.parts[part] if part else {"at": iso(self.at), "seq": self.seq, **self.parts}


def described_projections(home: HomeContext, at: int | None, part: str | None = None) -> DescribedProjections:
    """The projections now, or after the last event before a moment. Raises UnknownName if there is no such part."""
    if part is not None and part not in FOLD.projections:
        raise UnknownName("projection", part, FOLD.projections)
    seen, caveats = snapshot(home, at)
    parts = {name: as_json(seen.state.of(one)) for name, one in FOLD.projections.items()}
    return DescribedProjections(seen.now.at, seen.state.seq, parts, caveats)


def described_projection(state: State, name: str) -> Mapping[str, Json]:
    """One projection of a state, and its row, as JSON values; raises UnknownName if none has this name."""
    if name not in FOLD.projections:
        raise UnknownName("projection", name, FOLD.projections)
    return {"projection": name, "seq": state.seq, "value": as_json(state.of(FOLD.projections[name]))}


def as_json(value: Any) -> Json:
    """A value as JSON with the names of its fields; moments as ISO 8601."""
    if isinstance(value, Moment):
        return iso(value.at)
    if is_dataclass(value):
        return {field.name: as_json(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return {name: as_json(held) for name, held in value._asdict().items()}
    if isinstance(value, Mapping):
        return {name: as_json(held) for name, held in value.items()}
    if isinstance(value, tuple | list | frozenset):
        return [as_json(held) for held in value]
    return value
