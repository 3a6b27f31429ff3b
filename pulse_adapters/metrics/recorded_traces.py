"""Reads recorded ticks and settled effects for the export."""

import json
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import astuple
from typing import Any

from pulse_adapters.metrics.spans import EffectStep, TickSpan
from pulse_adapters.metrics.tracing import ExportPosition, TraceBatch
from pulse_core.model.effect_kinds import SETTLING
from pulse_core.model.errors import PulseError
from pulse_core.model.event import Event
from pulse_core.model.moment import US_PER_SECOND
from pulse_core.model.tick import TickRecord
from pulse_core.ports.readers import EventQuery, EventReader, VitalsReader

RIPE_US = 3 * US_PER_SECOND
"""A tick's record may be replaced until the whole onion has seen it."""


class RecordedTraces:
    """Implements `Source` on what a home has recorded. events, vitals: open its log and its vitals for reading."""

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
        """At most so many ripe ticks, and as many settled effects."""
        with self._events() as log, self._vitals() as vitals:
            head = log.head().seq
            wanted = EventQuery(since_seq=place.seq, kinds=tuple(SETTLING))
            settled = list(log.events(wanted, limit=most))
            lives = [life for one in settled if (life := effect_history(log, one.subject))]
            ripe = time.time_ns() // 1_000 - RIPE_US
            ticks = [tick for tick in vitals.ticks_after(place.tick, most) if tick.moment.at <= ripe]
        seq = settled[-1].seq if len(settled) == most else max(head, place.seq)
        last = ticks[-1].tick if ticks else place.tick
        made = [
            TickSpan(
                one.tick, one.moment.at, one.took_us, one.woken_by, one.version, one.effects, layers_of(one)
            )
            for one in ticks
        ]
        return TraceBatch(ExportPosition(place.host, seq, last), made, lives)


def layers_of(tick: TickRecord) -> Sequence[Sequence[Any]]:
    """A tick's layers in the form of the export."""
    return [astuple(layer) for layer in tick.layers]


def effect_history(log: EventReader, effect: str) -> Sequence[EffectStep]:
    """All events of an effect, its request first; empty if the request is not found."""
    try:
        wish = log.event(effect)
    except PulseError:
        return ()
    if wish.id != effect:
        return ()
    return [step_of(row) for row in (wish, *log.events(EventQuery(subject=effect, since_seq=wish.seq)))]


def step_of(row: Event) -> EffectStep:
    """The row, decoded; a payload that was redacted or lost is empty."""
    data = json.loads(row.data)
    known = data if isinstance(data, dict) else {}
    return EffectStep(row.id, row.kind, row.moment, row.subject, row.actor, known)
