"""The record of a tick: enough to fold it again."""

from dataclasses import astuple, dataclass, fields

from pulse_core.model.event import Head
from pulse_core.model.json_types import Json
from pulse_core.model.moment import Moment

NOBODY = "-"
"""Instead of a commit: no host was running, or it was not called."""


@dataclass(frozen=True, slots=True)
class LayerOutcome:
    """What one rule did: its name, passed, added, dropped, bypassed or error; its notes; its own microseconds."""

    rule: str
    outcome: str
    notes: tuple[str, ...] = ()
    took_us: int = 0


@dataclass(frozen=True, slots=True)
class TickRecord:
    """One tick: when, its reason, its events, samples and settings, and the result."""

    tick: int
    moment: Moment
    woken_by: str
    head: Head
    samples: tuple[int, ...]
    settings: str
    version: str
    layers: tuple[LayerOutcome, ...]
    effects: tuple[str, ...]
    tick_ms: int
    took_us: int
    snapshot: str | None = None
    """Hash of the snapshot in objects/, kept for ticks that emitted effects."""
    engine: str | None = None
    """The commit whose rules were asked, NOBODY if the onion was folded without any, nothing if only the reflex was
    (the rest was busy with an older tick, or there is no engine); None in records of before this was written down."""

    def spelled(self) -> dict[str, Json]:
        """The record as JSON values: the chain value in hex, layers as (rule, outcome, notes, microseconds)."""
        values = {one.name: getattr(self, one.name) for one in fields(self)}
        moment, head = values.pop("moment")._asdict(), values.pop("head")
        layers = [astuple(layer) for layer in self.layers]
        return {**values, **moment, "seq": head.seq, "chain": head.chain.hex(), "layers": layers}
