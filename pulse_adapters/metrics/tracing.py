"""Exports ticks and effects to a collector, from where the last export ended: nothing accepted is sent again."""

import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

from pulse_adapters.metrics.spans import EffectStep, Span, TickSpan, effect_spans, tick_spans

MOST = 200
"""Ticks, and effects, of one export."""


class ExportPosition(NamedTuple):
    """The position of the export: the log, its last row and its last tick."""

    host: str
    seq: int
    tick: int


class TraceBatch(NamedTuple):
    """Ticks and settled effects with their events, in order, and the position after them."""

    place: ExportPosition
    ticks: Sequence[TickSpan] = ()
    lives: Sequence[Sequence[EffectStep]] = ()


class TraceSource(Protocol):
    """The source of ticks and effects. Raises PulseError if they can't be read now."""

    def here(self) -> ExportPosition:
        """The end of everything recorded so far."""
        ...

    def after(self, place: ExportPosition, most: int) -> TraceBatch:
        """At most so many ticks, and settled effects, after a position."""
        ...


class PositionFile:
    """The export's position in a file, replaced atomically. An unreadable file counts as none."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def read(self) -> ExportPosition | None:
        """The stored position."""
        try:
            host, seq, tick = json.loads(self._path.read_text())
            return ExportPosition(str(host), int(seq), int(tick))
        except (OSError, ValueError, TypeError):
            return None

    def write(self, place: ExportPosition) -> None:
        """Store the position. Raises OSError."""
        new = self._path.with_name(f".{self._path.name}.new")
        new.write_text(json.dumps(place))
        os.replace(new, self._path)


class Tracing:
    """Sends what is new, batch by batch. send: exports spans; returns why they were not accepted, or empty."""

    def __init__(
        self, source: TraceSource, kept: PositionFile, send: Callable[[Sequence[Span]], str]
    ) -> None:
        self._source, self._kept, self._send = source, kept, send
        self._place: ExportPosition | None = None

    def round(self) -> str:
        """Send all that is new; returns the problem, or empty. Raises PulseError and OSError."""
        place = self._place = self._place or self._begun()
        while True:
            batch = self._source.after(place, MOST)
            if batch.place == place:
                return ""
            if (spans := spans_of(batch)) and (why := self._send(spans)):
                return why
            place = self._place = batch.place
            self._kept.write(place)

    def _begun(self) -> ExportPosition:
        """The position of the last export; a log that was never exported starts at its end."""
        here, kept = self._source.here(), self._kept.read()
        if kept is None or kept.host != here.host or kept.seq > here.seq:
            self._kept.write(here)
            return here
        # Vitals may be deleted, and then ticks are counted anew.
        return kept if kept.tick <= here.tick else kept._replace(tick=0)


def spans_of(batch: TraceBatch) -> list[Span]:
    """All spans of a batch."""
    host = batch.place.host
    spans = [span for tick in batch.ticks for span in tick_spans(host, tick)]
    return spans + [span for life in batch.lives for span in effect_spans(host, life)]
