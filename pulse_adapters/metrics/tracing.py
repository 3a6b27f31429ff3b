"""Ticks and effects to a collector, from where the last export ended: what was taken is never sent again."""

import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

from pulse_adapters.metrics.spans import EffectStep, Span, TickSpan, effect_spans, tick_spans

MOST = 200
"""Ticks, and effects, of one export."""


class ExportPosition(NamedTuple):
    """What was exported: of which log, up to which row and which tick."""

    host: str
    seq: int
    tick: int


class TraceBatch(NamedTuple):
    """Ticks and lives of settled effects, in order, and where one stands after them."""

    place: ExportPosition
    ticks: Sequence[TickSpan] = ()
    lives: Sequence[Sequence[EffectStep]] = ()


class TraceSource(Protocol):
    """Where ticks and effects come from. Raises PulseError if they cannot be read now."""

    def here(self) -> ExportPosition:
        """The end of everything recorded so far."""
        ...

    def after(self, place: ExportPosition, most: int) -> TraceBatch:
        """At most so many ticks, and settled effects, behind a place."""
        ...


class PositionFile:
    """The place in a file, replaced whole. A file that cannot be read is none."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def read(self) -> ExportPosition | None:
        """The place that was kept last."""
        try:
            host, seq, tick = json.loads(self._path.read_text())
            return ExportPosition(str(host), int(seq), int(tick))
        except (OSError, ValueError, TypeError):
            return None

    def write(self, place: ExportPosition) -> None:
        """Keep this one. Raises OSError."""
        new = self._path.with_name(f".{self._path.name}.new")
        new.write_text(json.dumps(place))
        os.replace(new, self._path)


class Tracing:
    """Sends what is new, batch by batch. send: takes spans; why they were not taken, or nothing."""

    def __init__(
        self, source: TraceSource, kept: PositionFile, send: Callable[[Sequence[Span]], str]
    ) -> None:
        self._source, self._kept, self._send = source, kept, send
        self._place: ExportPosition | None = None

    def round(self) -> str:
        """Send all that is new; what is in the way, or nothing. Raises PulseError and OSError."""
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
        """Where the last one ended; a log that was never exported is exported from now on, not from its beginning."""
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
