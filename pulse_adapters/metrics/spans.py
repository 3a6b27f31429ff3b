"""Ticks and effects as spans. Pure: the same rows give the same spans and ids, so an export can be repeated.

A tick is the root of a trace; the effects that it requested are its children, and an effect's attempts are the effect's.
An effect that no tick requested is the root of its own trace.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from typing import Any, NamedTuple

from pulse_core.model.event import Event
from pulse_core.model.moment import Moment
from pulse_core.model.tick import TickRecord

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
