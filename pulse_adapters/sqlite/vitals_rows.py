"""Samples and tick records as rows of vitals.db, and back."""

import json
from typing import Any

from pulse_core.model.event import Head
from pulse_core.model.moment import Moment
from pulse_core.model.tick import LayerOutcome, TickRecord
from pulse_core.model.vitals import Sample


def sample_row(sample: Sample) -> tuple[Any, ...]:
    """The sample in the order of SAMPLE_COLUMNS."""
    return (sample.id, sample.key, *sample.moment, json.dumps(dict(sample.data), default=repr))


def sample_of(row: tuple[Any, ...]) -> Sample:
    """The sample that such a row holds."""
    return Sample(row[0], row[1], Moment(*row[2:5]), json.loads(row[5]))


def tick_row(tick: TickRecord) -> tuple[Any, ...]:
    """The record in the order of TICK_COLUMNS."""
    layers = [(layer.rule, layer.outcome, layer.notes, layer.took_us) for layer in tick.layers]
    return (
        tick.tick,
        *tick.moment,
        tick.woken_by,
        tick.head.seq,
        tick.head.chain.hex(),
        json.dumps(tick.samples),
        tick.settings,
        tick.version,
        json.dumps(layers),
        json.dumps(tick.effects),
        tick.tick_ms,
        tick.took_us,
        tick.snapshot,
        tick.engine,
    )


def tick_of(row: tuple[Any, ...]) -> TickRecord:
    """The record that such a row holds."""
    return TickRecord(
        tick=row[0],
        moment=Moment(*row[1:4]),
        woken_by=row[4],
        head=Head(row[5], bytes.fromhex(row[6])),
        samples=tuple(json.loads(row[7])),
        settings=row[8],
        version=row[9],
        layers=layers_of(row[10]),
        effects=tuple(json.loads(row[11])),
        tick_ms=row[12],
        took_us=row[13],
        snapshot=row[14],
        engine=row[15],
    )


def layers_of(text: str) -> tuple[LayerOutcome, ...]:
    """What each rule did, out of a row's JSON."""
    return tuple(LayerOutcome(rule, said, tuple(notes), us) for rule, said, notes, us in json.loads(text))
