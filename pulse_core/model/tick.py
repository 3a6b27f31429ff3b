"""What is kept of a tick: enough to fold it again."""

from dataclasses import dataclass

from pulse_core.model.event import Head
from pulse_core.model.moment import Moment

NOBODY = "-"
"""Instead of a commit: no host was up, or nobody was let ask it."""


@dataclass(frozen=True, slots=True)
class LayerOutcome:
    """What one rule did: its name, passed, added, dropped, bypassed or error; its notes; its own microseconds."""

    rule: str
    outcome: str
    notes: tuple[str, ...] = ()
    took_us: int = 0


@dataclass(frozen=True, slots=True)
class TickRecord:
    """One tick: when, woken by what, on which events, samples and settings, and what came of it."""

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
