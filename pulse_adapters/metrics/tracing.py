"""Exports ticks and effects to a collector, from where the last export ended: nothing accepted is sent again."""

import json
import os
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import NamedTuple

from pulse_adapters.metrics.spans import Span, effect_spans, tick_span
from pulse_core.model.errors import PulseError
from pulse_core.model.event import Event
from pulse_core.model.moment import US_PER_SECOND
from pulse_core.model.names import SETTLING
from pulse_core.model.tick import TickRecord
from pulse_core.ports.readers import EventQuery, EventReader, VitalsReader

MOST = 200
"""Ticks, and effects, of one export."""
RIPE_US = 3 * US_PER_SECOND
"""A tick's record may be replaced until the whole onion has seen it."""


class ExportPosition(NamedTuple):
    """The position of the export: the log, its last row and its last tick."""

    host: str
    seq: int
    tick: int


class TraceBatch(NamedTuple):
    """Ticks, settled effects with all of their events, in order, and the position after them."""

    place: ExportPosition
    ticks: Sequence[TickRecord] = ()
    effects: Sequence[Sequence[Event]] = ()

    def spans(self) -> list[Span]:
        """All of its spans."""
        host = self.place.host
        ticks = [tick_span(host, tick) for tick in self.ticks]
        return ticks + [span for events in self.effects for span in effect_spans(host, events)]


class RecordedTraces:
    """What a home has recorded. events, vitals: open its log and its vitals for reading; each call may raise PulseError."""

    def __init__(
        self,
        events: Callable[[], AbstractContextManager[EventReader]],
        vitals: Callable[[], AbstractContextManager[VitalsReader]],
    ) -> None:
        self._events, self._vitals = events, vitals

    def here(self) -> ExportPosition:
        """The end of everything recorded so far; the log's name is the host id of its first row."""
        with self._events() as log, self._vitals() as vitals:
            first = next(log.events(limit=1), None)
            return ExportPosition(first.host if first else "", log.head().seq, vitals.tick_count())

    def after(self, place: ExportPosition, most: int) -> TraceBatch:
        """At most so many ripe ticks, and as many settled effects, after a position."""
        with self._events() as log, self._vitals() as vitals:
            head = log.head().seq
            wanted = EventQuery(since_seq=place.seq, kinds=tuple(SETTLING))
            settled = list(log.events(wanted, limit=most))
            effects = [events for one in settled if (events := events_of_effect(log, one.subject))]
            ripe = time.time_ns() // 1_000 - RIPE_US
            ticks = [tick for tick in vitals.ticks_after(place.tick, most) if tick.moment.at <= ripe]
        seq = settled[-1].seq if len(settled) == most else max(head, place.seq)
        last = ticks[-1].tick if ticks else place.tick
        return TraceBatch(ExportPosition(place.host, seq, last), ticks, effects)


def events_of_effect(log: EventReader, effect: str) -> Sequence[Event]:
    """All events of an effect, its request first; empty if the request is not found."""
    try:
        request = log.event(effect)
    except PulseError:
        return ()
    if request.id != effect:
        return ()
    return [request, *log.events(EventQuery(subject=effect, since_seq=request.seq))]


def replace_file(path: Path, body: bytes) -> None:
    """Replace it whole; readable by everybody, as node_exporter needs. Raises OSError, and then keeps the old one."""
    new = path.with_name(f".{path.name}.new")
    try:
        with open(new, "wb") as file:
            os.fchmod(file.fileno(), 0o644)
            file.write(body)
        os.replace(new, path)
    except OSError:
        new.unlink(missing_ok=True)
        raise


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
        replace_file(self._path, json.dumps(place).encode())


class Tracing:
    """Sends what is new, batch by batch. send: exports spans; returns why they were not accepted, or empty."""

    def __init__(
        self, recorded: RecordedTraces, kept: PositionFile, send: Callable[[Sequence[Span]], str]
    ) -> None:
        self._recorded, self._kept, self._send = recorded, kept, send
        self._place: ExportPosition | None = None

    def round(self) -> str:
        """Send all that is new; returns the problem, or empty. Raises PulseError and OSError."""
        place = self._place = self._place or self._start()
        while True:
            batch = self._recorded.after(place, MOST)
            if batch.place == place:
                return ""
            if (spans := batch.spans()) and (why := self._send(spans)):
                return why
            place = self._place = batch.place
            self._kept.write(place)

    def _start(self) -> ExportPosition:
        """The position of the last export; a log that was never exported starts at its end."""
        here, kept = self._recorded.here(), self._kept.read()
        if kept is None or kept.host != here.host or kept.seq > here.seq:
            self._kept.write(here)
            return here
        # Vitals may be deleted, and then ticks are counted anew.
        return kept if kept.tick <= here.tick else kept._replace(tick=0)
