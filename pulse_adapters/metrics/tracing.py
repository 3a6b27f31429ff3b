"""Exports ticks and effects to a collector as spans, from where the last export ended: nothing accepted is sent again.

A tick is the root of a trace; the effects that it requested are its children, and an effect's attempts are the effect's.
An effect that no tick requested is the root of its own trace. The same rows give the same spans and ids, so that an
export can be repeated.
"""

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from pulse_adapters.workers.plain_file import replace_plain
from pulse_core.model.errors import PulseError
from pulse_core.model.event import Event
from pulse_core.model.moment import US_PER_SECOND, Moment
from pulse_core.model.names import SETTLING
from pulse_core.model.tick import TickRecord
from pulse_core.ports.readers import EventQuery, EventReader, VitalsReader

MOST = 200
"""Ticks, and effects, of one export."""
RIPE_US = 3 * US_PER_SECOND
"""A tick's record may be replaced until the whole onion has seen it."""

US = 1_000
"""Nanoseconds."""

EFFECT, EXECUTING = "effect", "effect-executing"
ACKED, CANCELLED = "effect-acked", "effect-cancelled"


class Span(NamedTuple):
    """A span: numbers as OpenTelemetry has them, times in nanoseconds; failed: why, or empty."""

    trace: int
    id: int
    parent: int | None
    name: str
    start: int
    end: int
    attributes: Mapping[str, Any]
    failed: str = ""


def number(text: str, size: int) -> int:
    """A number derived from a text, of so many bytes, never 0."""
    return int.from_bytes(sha256(text.encode()).digest()[:size], "big") or 1


def tick_span(host: str, tick: TickRecord) -> Span:
    """The span of a tick."""
    trace, own = _names_of_tick(host, tick.tick)
    errors = [f"{one.rule}: {'; '.join(one.notes)}" for one in tick.layers if one.outcome == "error"]
    attributes = {
        "pulse.tick": tick.tick,
        "pulse.woken_by": tick.woken_by,
        "pulse.version": tick.version,
        "pulse.effects": list(tick.effects),
        "pulse.rules": [f"{one.rule} {one.outcome} {one.took_us} us" for one in tick.layers],
    }
    start = tick.moment.at * US
    return Span(trace, own, None, "tick", start, start + tick.took_us * US, attributes, "; ".join(errors))


def effect_spans(host: str, events: Sequence[Event]) -> Iterator[Span]:
    """The spans of a settled effect: its own, and one for each attempt. events: all of its own, the request first."""
    request, last = events[0], events[-1]
    data = _data_of(request)
    tick = data.get("tick")
    trace, parent = _names_of_tick(host, tick) if tick else (number(request.id, 16), None)
    own = number(request.id, 8)
    attributes = {
        "pulse.effect": request.id,
        "pulse.key": request.subject,
        "pulse.actor": request.actor,
        "pulse.reason": str(data.get("reason", "")),
        "pulse.rule": str(data.get("rule", "")),
        "pulse.outcome": last.kind.removeprefix("effect-"),
        "pulse.attempts": sum(event.kind == EXECUTING for event in events),
    }
    start, end = _between(request.moment, last.moment)
    name = str(data.get("action", EFFECT))
    yield Span(trace, own, parent, name, start, end, attributes, _failure(last))
    for place, (begun, ended) in enumerate(_attempts(events), 1):
        start, end = _between(begun.moment, ended.moment)
        about = {"pulse.effect": request.id, "pulse.attempt": place}
        yield Span(trace, number(begun.id, 8), own, f"{name} attempt", start, end, about, _failure(ended))


def _names_of_tick(host: str, tick: int) -> tuple[int, int]:
    """The trace and the span of a tick."""
    return number(f"{host} tick {tick}", 16), number(f"{host} tick {tick}", 8)


def _attempts(events: Sequence[Event]) -> Iterator[tuple[Event, Event]]:
    """Each attempt's first event with its last; one that a crash cut off ends with the next one."""
    begun: Event | None = None
    for event in events[1:]:
        if begun is not None and event.kind != "effect-cancel-requested":
            yield begun, event
            begun = None
        if event.kind == EXECUTING:
            begun = event


def _between(first: Moment, last: Moment) -> tuple[int, int]:
    """Start and end in nanoseconds; the duration is from the boot clock."""
    return first.at * US, (first.at + last.since(first)) * US


def _failure(event: Event) -> str:
    """Why this is a failure, or empty."""
    if event.kind in (ACKED, CANCELLED):
        return ""
    if event.kind == EXECUTING:
        return "interrupted, and begun again"
    data = _data_of(event)
    return f"{event.kind.removeprefix('effect-')}: {data.get('error') or data.get('why') or ''}"


def _data_of(event: Event) -> Mapping[str, Any]:
    """The decoded payload; empty if it was redacted or lost."""
    data = json.loads(event.data)
    return data if isinstance(data, dict) else {}


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
        replace_plain(self._path, json.dumps(place).encode(), synced=False)


Send = Callable[[Sequence[Span]], str]
"""Exports spans; returns why they were not accepted, or empty."""


class Tracing:
    """Sends what is new, batch by batch. send: how."""

    def __init__(self, recorded: RecordedTraces, kept: PositionFile, send: Send) -> None:
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
