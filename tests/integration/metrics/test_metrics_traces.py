"""Traces from a real log and real vitals to a collector that decodes what it gets."""

import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from functools import partial
from pathlib import Path

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span as Wire

from pulse_adapters.host.clock import SystemClock
from pulse_adapters.metrics import otlp
from pulse_adapters.metrics.otlp import OtlpCollector
from pulse_adapters.metrics.tracing import PositionFile
from pulse_adapters.objects.files import FileObjects
from pulse_adapters.sqlite.events import SqliteEventLog, new_id
from pulse_adapters.sqlite.vitals import SqliteVitals
from pulse_core.model.event import Draft, Head
from pulse_core.model.kinds import Effect, EffectAcked, EffectExecuting, EffectFailed
from pulse_core.model.moment import Moment
from pulse_core.model.tick import LayerOutcome, TickRecord
from tests.integration.metrics.metrics_scene import complaint, eventually, measuring, receiving

LATE_US = 10_000_000
"""Ticks of so long ago are ripe."""


class Collector:
    """Decodes what it gets; refuses while `status` is not 200."""

    def __init__(self) -> None:
        self.spans: list[Wire] = []
        self.resources: dict[str, str] = {}
        self.status, self.refused = 200, 0
        self._lock = threading.Lock()

    def __call__(self, body: bytes) -> int:
        request = ExportTraceServiceRequest.FromString(body)
        with self._lock:
            if self.status != 200:
                self.refused += 1
                return self.status
            for resource in request.resource_spans:
                self.resources = {one.key: one.value.string_value for one in resource.resource.attributes}
                self.spans += [span for scope in resource.scope_spans for span in scope.spans]
        return 200

    def named(self, name: str) -> list[Wire]:
        return [span for span in self.spans if span.name == name]

    def has(self, spans: int) -> bool:
        return len(self.spans) == spans

    def numbers(self) -> list[int]:
        """The ticks that arrived, in their order."""
        return [attribute(span, "pulse.tick") for span in self.named("tick")]


def attribute(span: Wire, key: str) -> int:
    return int(next(one.value.int_value for one in span.attributes if one.key == key))


class Lived:
    """A home in which ticks and effects are recorded."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.mkdir(exist_ok=True)

    async def record(self, *ticks: int, wrong: bool = False) -> None:
        """Record these ticks, each with an effect that is settled."""
        opened = SqliteEventLog.open(
            self.path / "events.db", clock=SystemClock(), objects=FileObjects(self.path / "objects")
        )
        async with opened as log, SqliteVitals.open(self.path / "vitals.db") as vitals:
            for tick in ticks:
                vitals.record(recorded(tick))
                wish = Draft(
                    Effect(action="note", key=f"note:{tick}", tick=tick), f"note:{tick}", id=new_id()
                )
                end = EffectFailed(error="no pen") if wrong else EffectAcked(took_us=1)
                await log.append(wish, Draft(EffectExecuting(), wish.id), Draft(end, wish.id))


def recorded(tick: int) -> TickRecord:
    late = Moment(time.time_ns() // 1_000 - LATE_US, "boot", 1)
    layers = (LayerOutcome("guard", "added", (), 5),)
    return TickRecord(tick, late, "timer", Head(0), (), "", "0", layers, (f"note:{tick}",), 1, 250)


@pytest.fixture
def home(tmp_path: Path) -> Lived:
    return Lived(tmp_path / "home")


async def test_ticks_and_effects_arrive_as_one_trace_each(home: Lived) -> None:
    await home.record(1)
    collector = Collector()
    with receiving(collector) as port, measuring(home.path, "--otlp", f"http://127.0.0.1:{port}/v1/traces"):
        eventually((home.path / "exported.json").exists, "the place")
        await home.record(2, 3)
        eventually(lambda: len(collector.spans) == 6, "two ticks, effects and attempts")
    assert collector.resources["service.name"] == "pulse"
    assert len(collector.resources["service.instance.id"]) == 36
    assert sorted(collector.numbers()) == [2, 3]
    for tick in collector.named("tick"):
        (effect,) = [span for span in collector.named("note") if span.trace_id == tick.trace_id]
        (attempt,) = [span for span in collector.named("note attempt") if span.trace_id == tick.trace_id]
        assert (effect.parent_span_id, attempt.parent_span_id) == (tick.span_id, effect.span_id)
        assert tick.end_time_unix_nano - tick.start_time_unix_nano == 250_000
        assert effect.start_time_unix_nano <= attempt.start_time_unix_nano <= attempt.end_time_unix_nano
        assert effect.status.code == effect.status.STATUS_CODE_OK


async def test_a_failure_is_one(home: Lived) -> None:
    await home.record(1)
    collector = Collector()
    with receiving(collector) as port, measuring(home.path, "--otlp", f"http://127.0.0.1:{port}/v1/traces"):
        eventually((home.path / "exported.json").exists, "the place")
        await home.record(2, wrong=True)
        eventually(lambda: collector.named("note"), "the effect")
    (effect,) = collector.named("note")
    assert (effect.status.code, effect.status.message) == (effect.status.STATUS_CODE_ERROR, "failed: no pen")


async def test_after_a_restart_nothing_is_missing_and_nothing_sent_twice(home: Lived) -> None:
    await home.record(1)
    collector, kept = Collector(), PositionFile(home.path / "exported.json")
    with receiving(collector) as port:
        for tick in range(2, 6):
            if tick % 2:
                await home.record(tick)
            with measuring(home.path, "--otlp", f"http://127.0.0.1:{port}/v1/traces") as child:
                eventually(kept.read, "the place")
                if not tick % 2:
                    await home.record(tick)
                eventually(partial(collector.has, 3 * (tick - 1)), "the tick and its effect")
                assert child.stdin is not None
                child.stdin.close()
                assert child.wait(60) == 0
    assert collector.numbers() == [2, 3, 4, 5]
    assert set(Counter(span.span_id for span in collector.spans).values()) == {1}


async def test_a_collector_that_answers_without_end_has_what_it_was_sent_and_is_sent_the_next(
    home: Lived,
) -> None:
    await home.record(1)
    collector = Collector()
    with (
        receiving(collector, endless=True) as port,
        measuring(home.path, "--otlp", f"http://127.0.0.1:{port}/v1/traces"),
    ):
        eventually((home.path / "exported.json").exists, "the place")
        await home.record(2)
        eventually(lambda: collector.numbers() == [2], "the tick")
        await home.record(3)
        eventually(lambda: collector.numbers() == [2, 3], "the next tick")


def test_a_collector_that_sets_no_timeout_off_ends_the_process() -> None:
    code = (
        "import time\nfrom pulse_adapters.metrics import process\nprocess.LONGEST_S = 0.1\n"
        "process.report_problem = print\n"
        "process.TraceExport(None, 'http://it')._in_time(lambda spans: time.sleep(600))(())"
    )
    ended = subprocess.run(
        (sys.executable, "-c", code), capture_output=True, text=True, timeout=60, check=False
    )
    assert (ended.returncode, ended.stdout) == (
        1,
        "http://it did not come to an end of its answer within 0.1 s\n",
    )


async def test_what_the_collector_refuses_is_said_once_and_kept_for_it(home: Lived) -> None:
    await home.record(1)
    collector = Collector()
    with (
        receiving(collector) as port,
        measuring(home.path, "--otlp", f"http://127.0.0.1:{port}/v1/traces") as child,
    ):
        eventually((home.path / "exported.json").exists, "the place")
        collector.status = 400
        await home.record(2)
        assert child.stdout is not None
        assert "did not take the traces" in complaint(child)
        collector.status = 200
        eventually(lambda: collector.numbers() == [2], "the tick")
        child.kill()
        assert child.stdout.read() == b""


def test_why_a_collector_took_nothing_is_told_and_not_only_that_it_was_given_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(otlp, "TIMEOUT_S", 2.5)  # time for a second attempt, which is after a second
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    assert OtlpCollector(f"http://127.0.0.1:{port}/v1/traces", "host", "1").take(()) == "Connection refused"
    collector = Collector()
    collector.status = 400
    with receiving(collector) as port:
        assert "400" in OtlpCollector(f"http://127.0.0.1:{port}/v1/traces", "host", "1").take(())
