"""Ticks and effects as spans, and the place up to which they were exported."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from pulse_adapters.metrics.tracing import (
    MOST,
    ExportPosition,
    PositionFile,
    RecordedTraces,
    Span,
    TraceBatch,
    Tracing,
    effect_spans,
    tick_span,
)
from pulse_core.model.errors import LogUnavailable
from pulse_core.model.event import Event, Head
from pulse_core.model.moment import Moment
from pulse_core.model.stored_data import REDACTED
from pulse_core.model.tick import LayerOutcome, TickRecord

NOON = 1_800_000_000_000_000


def step(kind: str, us: int, wall: int = 0, **data: object) -> Event:
    at = Moment(NOON + us + wall, "boot", us)
    return Event(us, f"{kind}-{us}", *at, kind, "restart-process:x", "pulse", "host", None, json.dumps(data))


def recorded(tick: int, woken_by: str = "timer", *layers: LayerOutcome) -> TickRecord:
    effects = ("restart-process:x",) if layers else ()
    return TickRecord(
        tick, Moment(NOON, "boot", 0), woken_by, Head(0), (), "", "0.1", layers, effects, 1, 250
    )


def spans(*steps: Event, tick: int | None = 7) -> list[Span]:
    request = step("effect", 0, action="restart-process", tick=tick, rule="process_watchdog", reason="dead")
    return list(effect_spans("host", [request, *steps]))


BEGUN, ACKED = step("effect-executing", 10), step("effect-acked", 30)


def test_a_tick_begins_a_trace_with_all_that_is_known_of_it() -> None:
    watchdog = LayerOutcome("process_watchdog", "added", ("due",), 12)
    broken = LayerOutcome("broken", "error", ("ZeroDivisionError", "x"), 3)
    span = tick_span("host", recorded(7, "process-died", watchdog, broken))
    assert (span.name, span.parent) == ("tick", None)
    assert (span.start, span.end) == (NOON * 1000, NOON * 1000 + 250_000)
    assert span.attributes["pulse.rules"] == ["process_watchdog added 12 us", "broken error 3 us"]
    assert span.failed == "broken: ZeroDivisionError; x"


def test_an_effect_hangs_below_its_tick_and_its_attempt_below_it() -> None:
    tick = tick_span("host", recorded(7))
    effect, attempt = spans(BEGUN, ACKED)
    assert effect.trace == attempt.trace == tick.trace
    assert (effect.parent, attempt.parent) == (tick.id, effect.id)
    assert (effect.name, attempt.name) == ("restart-process", "restart-process attempt")
    assert (effect.end - effect.start, attempt.end - attempt.start) == (30_000, 20_000)
    assert effect.attributes["pulse.outcome"] == "acked"
    assert effect.failed == attempt.failed == ""


def test_an_effect_by_hand_has_a_trace_of_its_own() -> None:
    (effect, _) = spans(BEGUN, ACKED, tick=None)
    (other, _) = list(effect_spans("host", [step("effect", 1, action="note"), BEGUN, ACKED]))
    assert effect.parent is None
    assert effect.trace != other.trace
    assert effect.trace.bit_length() <= 128
    assert effect.id.bit_length() <= 64


def test_every_attempt_is_told_with_why_it_was_in_vain() -> None:
    told = spans(
        step("effect-executing", 10),
        step("effect-attempt-failed", 20, error="refused"),
        step("effect-executing", 30),
        step("effect-cancel-requested", 35),
        step("effect-executing", 40),
        step("effect-failed", 50, error="gave up"),
    )
    assert [one.failed for one in told] == [
        "failed: gave up",
        "attempt-failed: refused",
        "interrupted, and begun again",
        "failed: gave up",
    ]
    assert [one.attributes["pulse.attempt"] for one in told[1:]] == [1, 2, 3]
    assert told[0].attributes["pulse.attempts"] == 3


def test_what_was_cancelled_before_it_began_is_no_failure() -> None:
    (effect,) = spans(step("effect-cancelled", 5, why="paused"))
    assert (effect.failed, effect.attributes["pulse.outcome"]) == ("", "cancelled")


def test_a_clock_that_is_set_back_makes_no_span_end_before_it_began() -> None:
    (effect, _) = spans(BEGUN, step("effect-acked", 30, wall=-10_000_000))
    assert effect.end - effect.start == 30_000


def test_a_payload_that_was_redacted_makes_a_poorer_span() -> None:
    bare = [step("effect", 0)._replace(data=REDACTED), BEGUN, ACKED]
    assert next(effect_spans("host", bare)).name == "effect"


def test_the_same_rows_give_the_same_ids() -> None:
    assert spans(BEGUN, ACKED) == spans(BEGUN, ACKED)


@dataclass
class Rows(RecordedTraces):
    """A log in memory: row n settles an effect if n is even; tick n is tick n."""

    seq: int = 0
    tick: int = 0
    host: str = "host"
    broken: bool = False

    def here(self) -> ExportPosition:
        return ExportPosition(self.host, self.seq, self.tick)

    def after(self, place: ExportPosition, most: int) -> TraceBatch:
        if self.broken:
            raise LogUnavailable("not now")
        settled = [row for row in range(place.seq + 1, self.seq + 1) if row % 2 == 0][:most]
        ticks = list(range(place.tick + 1, self.tick + 1))[:most]
        seq = settled[-1] if len(settled) == most else max(self.seq, place.seq)
        return TraceBatch(
            ExportPosition(self.host, seq, ticks[-1] if ticks else place.tick),
            [recorded(one) for one in ticks],
            [(step("effect", row, action=str(row)), step("effect-acked", row)) for row in settled],
        )


@dataclass
class Collected:
    """A collector in memory."""

    names: list[str] = field(default_factory=list)
    answer: str = ""

    def __call__(self, spans: Sequence[Span]) -> str:
        if not self.answer:
            self.names += [str(one.attributes.get("pulse.tick", one.name)) for one in spans]
        return self.answer


@pytest.fixture
def kept(tmp_path: Path) -> PositionFile:
    return PositionFile(tmp_path / "exported.json")


def test_what_was_recorded_before_the_first_export_is_left(kept: PositionFile) -> None:
    rows, collected = Rows(10, 5), Collected()
    tracing = Tracing(rows, kept, collected)
    assert tracing.round() == ""
    assert collected.names == []
    rows.seq, rows.tick = 12, 6
    tracing.round()
    assert collected.names == ["6", "12"]


def test_a_restart_goes_on_where_the_last_one_ended(kept: PositionFile) -> None:
    rows, collected = Rows(), Collected()
    for end in range(0, 20, 5):
        rows.seq = rows.tick = end
        Tracing(rows, kept, collected).round()
        Tracing(rows, kept, collected).round()
    ticks = [str(one) for one in range(1, 16)]
    assert sorted(collected.names) == sorted([*ticks, *ticks[1::2]])


def test_what_is_not_taken_is_sent_again_and_nothing_twice(kept: PositionFile) -> None:
    rows, collected = Rows(), Collected()
    Tracing(rows, kept, collected).round()
    rows.seq, collected.answer = 4, "refused"
    tracing = Tracing(rows, kept, collected)
    assert tracing.round() == "refused"
    assert Tracing(rows, kept, collected).round() == "refused"
    collected.answer = ""
    assert tracing.round() == tracing.round() == ""
    assert collected.names == ["2", "4"]


def test_a_long_time_without_export_is_made_up_batch_by_batch(kept: PositionFile) -> None:
    rows, collected = Rows(), Collected()
    tracing = Tracing(rows, kept, collected)
    tracing.round()
    rows.seq, rows.tick = 5 * MOST, 3 * MOST
    tracing.round()
    assert len(collected.names) == 3 * MOST + 5 * MOST // 2


def test_another_log_or_an_older_one_is_begun_at_its_end(kept: PositionFile) -> None:
    collected = Collected()
    for rows in (Rows(100, 50), Rows(200, 70, host="another"), Rows(30, 70, host="another")):
        Tracing(rows, kept, collected).round()
        assert kept.read() == rows.here()
    assert collected.names == []


def test_ticks_that_are_counted_anew_are_exported(kept: PositionFile) -> None:
    kept.write(ExportPosition("host", 10, 500))
    collected = Collected()
    Tracing(Rows(10, 3), kept, collected).round()
    assert collected.names == ["1", "2", "3"]


@pytest.mark.parametrize("text", ["", "{}", "[1]", '["host", "x", 2]', "\udcff"])
def test_a_place_that_cannot_be_read_is_none(tmp_path: Path, text: str) -> None:
    (tmp_path / "exported.json").write_text(text, errors="surrogateescape")
    assert PositionFile(tmp_path / "exported.json").read() is None


def test_a_log_that_cannot_be_read_now_is_read_later(kept: PositionFile) -> None:
    rows, collected = Rows(), Collected()
    tracing = Tracing(rows, kept, collected)
    tracing.round()
    rows.seq, rows.broken = 2, True
    with pytest.raises(LogUnavailable):
        tracing.round()
    rows.broken = False
    tracing.round()
    assert collected.names == ["2"]
