"""Ticks and effects as spans. Pure: the same rows give the same spans and ids, so an export can be repeated.

A tick is the root of a trace; the effects that it requested are its children, and an effect's attempts are the effect's.
An effect that no tick requested is the root of its own trace.
"""

from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from typing import Any, NamedTuple

from pulse_core.model.moment import Moment

US = 1_000
"""Nanoseconds."""

WISH, BEGUN, RETRIED = "effect", "effect-executing", "effect-attempt-failed"
ACKED, CANCELLED = "effect-acked", "effect-cancelled"


class TickSpan(NamedTuple):
    """A recorded tick; layers as (rule, outcome, notes, microseconds)."""

    number: int
    at: int
    took_us: int
    woken_by: str
    version: str
    effects: Sequence[str]
    layers: Sequence[Sequence[Any]]


class EffectStep(NamedTuple):
    """An event of an effect. id: the event's own; data: decoded."""

    id: str
    kind: str
    moment: Moment
    subject: str
    actor: str
    data: Mapping[str, Any]


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


def tick_spans(host: str, tick: TickSpan) -> Iterator[Span]:
    """The span of a tick."""
    trace, own = _names_of_tick(host, tick.number)
    errors = [f"{rule}: {'; '.join(notes)}" for rule, outcome, notes, _ in tick.layers if outcome == "error"]
    attributes = {
        "pulse.tick": tick.number,
        "pulse.woken_by": tick.woken_by,
        "pulse.version": tick.version,
        "pulse.effects": list(tick.effects),
        "pulse.rules": [f"{rule} {outcome} {took} us" for rule, outcome, _, took in tick.layers],
    }
    start = tick.at * US
    yield Span(trace, own, None, "tick", start, start + tick.took_us * US, attributes, "; ".join(errors))


def effect_spans(host: str, life: Sequence[EffectStep]) -> Iterator[Span]:
    """The spans of an effect that is settled: its own, and one for each attempt. life: its events, the request first."""
    wish, last = life[0], life[-1]
    tick = wish.data.get("tick")
    trace, parent = _names_of_tick(host, tick) if tick else (number(wish.id, 16), None)
    own = number(wish.id, 8)
    attributes = {
        "pulse.effect": wish.id,
        "pulse.key": wish.subject,
        "pulse.actor": wish.actor,
        "pulse.reason": str(wish.data.get("reason", "")),
        "pulse.rule": str(wish.data.get("rule", "")),
        "pulse.outcome": last.kind.removeprefix("effect-"),
        "pulse.attempts": sum(step.kind == BEGUN for step in life),
    }
    start, end = _between(wish.moment, last.moment)
    name = str(wish.data.get("action", WISH))
    yield Span(trace, own, parent, name, start, end, attributes, _failure(last))
    for place, (begun, ended) in enumerate(_attempts(life), 1):
        start, end = _between(begun.moment, ended.moment)
        about = {"pulse.effect": wish.id, "pulse.attempt": place}
        yield Span(trace, number(begun.id, 8), own, f"{name} attempt", start, end, about, _failure(ended))


def _names_of_tick(host: str, tick: int) -> tuple[int, int]:
    """The trace and the span of a tick."""
    return number(f"{host} tick {tick}", 16), number(f"{host} tick {tick}", 8)


def _attempts(life: Sequence[EffectStep]) -> Iterator[tuple[EffectStep, EffectStep]]:
    """Each attempt's first event with its last; one that a crash cut off ends with the next one."""
    begun: EffectStep | None = None
    for step in life[1:]:
        if begun is not None and step.kind != "effect-cancel-requested":
            yield begun, step
            begun = None
        if step.kind == BEGUN:
            begun = step


def _between(first: Moment, last: Moment) -> tuple[int, int]:
    """Start and end in nanoseconds; the duration is from the boot clock."""
    return first.at * US, (first.at + last.since(first)) * US


def _failure(step: EffectStep) -> str:
    """Why this is a failure, or empty."""
    if step.kind in (ACKED, CANCELLED):
        return ""
    if step.kind == BEGUN:
        return "interrupted, and begun again"
    told = step.data.get("error") or step.data.get("why") or ""
    return f"{step.kind.removeprefix('effect-')}: {told}"
