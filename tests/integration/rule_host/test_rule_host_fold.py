"""A host folds what the daemon would fold, out of nothing but what is new."""

import asyncio
import os
import signal
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pulse_adapters.rule_host.host import ChildRuleHost, SnapshotDelta, full_snapshot
from pulse_adapters.workers.host_messages import encode
from pulse_adapters.workers.output import Output
from pulse_core.composition import FOLD
from pulse_core.model.event import Event
from pulse_core.model.kinds import Effect, ErrorReported, LogMatched
from pulse_core.model.tick import LayerOutcome
from pulse_core.model.verdict import Verdict
from pulse_core.model.vitals import Sample, Window
from pulse_core.ports.engine import EngineFault, FoldResult, Revision
from pulse_core.projections.state import Snapshot
from pulse_core.rules import Inner, compose
from pulse_core.settings.settings import Settings
from tests.events import event, histories
from tests.integration.rule_host.rule_host_engines import (
    SETTINGS,
    at,
    folded,
    grown,
    host_supervisor,
    rule,
    written,
)
from tests.long_form import sample

SAMPLE_RULES = '''
async def tells(prev, curr, inner):
    """Everything that it sees, as one effect."""
    verdict = await inner(prev, curr)
    seen = {
        "prev": prev.tick, "now": list(curr.now), "seq": curr.state.seq, "digest": curr.settings.digest,
        "open": sorted(curr.effects.keys), "acted": len(curr.effects.acted), "paused": str(curr.control.paused),
        "conditions": sorted(curr.conditions.raised), "restarts": curr.process("gateway").restarts,
        "logs": repr(curr.logs), "engine": repr(curr.engine), "silences": repr(curr.silences),
        "windows": {key: [sample.data["value"] for sample in curr.window(key).samples] for key in sorted(curr.windows)},
        "before": {key: len(prev.window(key).samples) for key in sorted(prev.windows)},
    }
    return verdict.plus(Effect(action="note", key=f"seen-{curr.tick}", params=seen)).noting("told")


async def drops(prev, curr, inner):
    verdict = await inner(prev, curr)
    return Verdict((), verdict.tick_ms) if curr.tick % 3 == 0 else verdict


async def raises(prev, curr, inner):
    if curr.state.seq % 4 == 1:
        raise ValueError(f"row {curr.state.seq}")
    return await inner(prev, curr)


async def bypasses(prev, curr, inner):
    if curr.effects.count("pending") > 2:
        return [Effect(action="note", key="many")], 7
    return (await inner(prev, curr)).within(50)


async def asks_twice(prev, curr, inner):
    first = await inner(prev, prev)
    second = await inner(prev, curr)
    return second.noting(f"{len(first.effects)}")


async def wishes(prev, curr, inner):
    verdict = await inner(prev, curr)
    keys = curr.effects.keys
    return verdict.plus(*(Effect(action="note", key=f"again {key}", samples=curr.samples()) for key in sorted(keys)))
'''
NAMES = ("tells", "drops", "raises", "bypasses", "asks_twice", "wishes")


def in_process() -> dict[str, Any]:
    """The same rules, here."""
    space: dict[str, Any] = {"Effect": Effect, "Verdict": Verdict}
    exec(compile(SAMPLE_RULES, "rules", "exec"), space)
    return {name: space[name] for name in NAMES}


def locally(onion: Inner, prev: Snapshot, curr: Snapshot) -> Verdict:
    """What the onion says in this process."""
    try:
        onion(prev, curr).send(None)  # type: ignore[attr-defined]  # a coroutine, since rules are
    except StopIteration as done:
        verdict: Verdict = done.value
        return verdict
    raise AssertionError("it waits for something")


def without_time(layers: Sequence[LayerOutcome]) -> list[LayerOutcome]:
    return [replace(layer, took_us=0) for layer in layers]


def ticks(events: Sequence[Event], cuts: Sequence[int], readings: Sequence[int]) -> list[Snapshot]:
    """Snapshots over a history that is cut at these rows; each tick brings some samples."""
    rows = sorted({0, *(cut for cut in cuts if cut <= len(events)), len(events)})
    projected, windows, number = FOLD.start, dict[str, Window](), 0
    made = [at(1)]
    for tick, (first, last) in enumerate(pairwise([0, *rows]), 2):
        projected = FOLD(projected, events[first:last], last)
        for value in readings[tick % 3 :: 3]:
            number += 1
            key = f"sense-{value % 3}"
            sample = Sample(number, key, at(tick * 20).now, {"value": value})
            windows = {**windows, key: windows.get(key, Window()).plus(sample)}
        made.append(at(tick, projected, windows=windows))
    return made


@settings(max_examples=sample(5, 60), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    events=histories,
    cuts=st.lists(st.integers(0, 60), max_size=5),
    readings=st.lists(st.integers(0, 9), max_size=20),
    names=st.lists(st.sampled_from(NAMES), unique=True, min_size=1),
    skipped=st.sampled_from(NAMES),
)
def test_a_host_answers_what_the_same_rules_answer_here(
    tmp_path_factory: pytest.TempPathFactory,
    events: list[Event],
    cuts: list[int],
    readings: list[int],
    names: list[str],
    skipped: str,
) -> None:
    root = tmp_path_factory.mktemp("engine")
    listed = f"from rules.own import {', '.join(names)}\nRULES = [{', '.join(names)}]\n"
    asyncio.run(compared(written(root, SAMPLE_RULES, listed), events, cuts, readings, names, skipped))


async def compared(
    revision: Any,
    events: list[Event],
    cuts: list[int],
    readings: list[int],
    names: list[str],
    skipped: str,
) -> None:
    """Every tick, in both places."""
    snapshots = ticks(events, cuts, readings)
    rules = in_process()
    half = len(snapshots) // 2
    begin = snapshots[half]
    async with host_supervisor(revision, begin) as host:
        host.feed(events[begin.state.seq :])
        for prev, curr in pairwise(snapshots[half:]):
            late = len(snapshots) - 1 == curr.tick - 1
            host.quarantine([skipped] if late else [])
            here: list[LayerOutcome] = []
            used = [rules[name] for name in names if not (late and name == skipped)]
            verdict = locally(compose(used, trace=here), prev, curr)
            there = await host.fold(prev, curr)
            assert there.verdict == verdict
            assert without_time(there.layers) == without_time(here)
            errors = [f"rule:{layer.rule}" for layer in here if layer.outcome == "error"]
            assert [fault.whose for fault in there.faults] == errors


async def test_a_fault_names_rule_and_line(tmp_path: Path) -> None:
    async with host_supervisor(written(tmp_path, SAMPLE_RULES), at(1, replace(FOLD.start, seq=4))) as host:
        fold_result = await folded(host, 2, state=replace(FOLD.start, seq=5))
    line = SAMPLE_RULES.splitlines().index('        raise ValueError(f"row {curr.state.seq}")') + 2
    assert [(fault.whose, fault.message) for fault in fold_result.faults] == [
        ("rule:raises", f"ValueError: row 5 (rules/own.py:{line})")
    ]


def error(seq: int) -> Event:
    return event(seq, ErrorReported(message="no"), "x")


def test_only_what_is_new_crosses() -> None:
    events = [event(seq, Effect(action="note", key=f"k{seq}"), f"k{seq}") for seq in range(1, 1001)]
    window = Window(tuple(Sample(n, "a", at(n).now, {"value": n}) for n in range(1, 11)))
    prev = at(1, grown(events), windows={"a": window, "b": window})
    news = SnapshotDelta(prev)
    news.add_events([error(1001)])
    fresh = Sample(11, "a", at(11).now, {"value": 11})
    curr = at(2, FOLD(prev.state, [error(1001)]), windows={"a": window.plus(fresh)})
    message = news.of(curr)
    assert message["windows"] == {"a": (11, [(11, fresh.moment, fresh.data)]), "b": (0, ())}
    assert message["events"] == [error(1001)]
    assert "settings" not in message
    assert len(encode(message)) < 500
    again = news.of(replace(curr, tick=3))
    assert (again["windows"], again["events"]) == ({}, [])


async def test_events_that_a_snapshot_does_not_know_yet_wait_for_the_next(tmp_path: Path) -> None:
    async with host_supervisor(written(tmp_path, SAMPLE_RULES)) as host:
        wish = event(1, Effect(action="note", key="first"), "first")
        later = event(2, Effect(action="note", key="second"), "second")
        host.feed([wish, later])
        for tick, known in ((2, ["first"]), (3, ["first", "second"])):
            fold_result = await folded(host, tick, state=grown([wish, later][: tick - 1]))
            assert seen(fold_result)["open"] == known


async def test_what_is_provisional_is_seen_once(tmp_path: Path) -> None:
    wish = event(1, Effect(action="note", key="first"), "first")
    provisional = replace(grown([wish]), seq=0, provisional=1)
    async with host_supervisor(written(tmp_path, SAMPLE_RULES)) as host:
        host.feed([wish])
        assert seen(await folded(host, 2, state=provisional))["open"] == ["first"]
        assert seen(await folded(host, 3, state=grown([wish])))["open"] == ["first"]


async def test_much_that_was_heard_between_two_ticks_arrives(tmp_path: Path) -> None:
    events = [event(seq, Effect(action="note", key=f"k{seq:05}"), f"k{seq:05}") for seq in range(1, 5_001)]
    async with host_supervisor(
        written(tmp_path, rule("return Verdict(notes=(str(len(curr.effects.open)),))"))
    ) as host:
        for first in range(0, 5_000, 100):
            host.feed(events[first : first + 100])
        fold_result = await folded(host, 2, state=grown(events))
    assert fold_result.verdict.notes == ("5000",)


async def test_new_settings_arrive_without_their_secrets(tmp_path: Path) -> None:
    show = rule(
        """
        told = curr.settings
        return Verdict(notes=(told.digest, str(told.daemon.tick_ms), "".join(told.notify.urls)))
        """
    )
    told = Settings.model_validate(
        {
            "daemon": {"tick_ms": 777},
            "notify": {"urls": ["tgram://SECRET/1"]},
            "engine": {"deadline": "20s"},
            "process": [{"name": "it", "start": ["it", "--token=SECRET"], "env": {"KEY": "SECRET"}}],
        }
    )
    async with host_supervisor(written(tmp_path, show)) as host:
        assert (await folded(host, 2)).verdict.notes == (SETTINGS.digest, "15000", "")
        fold_result = await folded(host, 3, settings=told)
    assert fold_result.verdict.notes == (told.digest, "777", "tgram://***")


async def test_a_start_with_much_in_the_log_sees_all_of_it(tmp_path: Path) -> None:
    events = [event(seq, Effect(action="note", key=f"k{seq}"), f"k{seq}") for seq in range(1, 3_001)]
    async with host_supervisor(
        written(tmp_path, rule("return Verdict(notes=(str(len(prev.effects.open)),))")), at(1, grown(events))
    ) as host:
        assert (await folded(host, 2, state=grown(events))).verdict.notes == ("3000",)


def seen(fold_result: FoldResult) -> dict[str, Any]:
    return next(effect.params for effect in fold_result.verdict.effects if effect.key.startswith("seen-"))


async def test_a_host_that_was_killed_says_so_and_folds_no_more(tmp_path: Path) -> None:
    async with host_supervisor(written(tmp_path, SAMPLE_RULES)) as host:
        await ended(host)
        assert not host.alive
        for tick in (2, 3):
            fold_result = await folded(host, tick)
            assert fold_result.verdict == Verdict()
            assert [(one.whose, one.message) for one in fold_result.faults] == [
                ("engine", "its host was ended by SIGKILL")
            ]
        assert await host.keep() == {}
        host.feed([error(1)])
        host.quarantine(["tells"])


async def ended(host: ChildRuleHost) -> None:
    """Kill it, and wait until that is seen."""
    os.kill(host.pid, signal.SIGKILL)
    async with asyncio.timeout(60):
        while host.alive:
            await asyncio.sleep(0.005)


async def test_when_all_together_say_too_much_the_loudest_is_named(tmp_path: Path) -> None:
    says = (
        "return (await inner(prev, curr)).plus(Effect(action='note', key='{0}', params={{'x': '{0}' * {1}}}))"
    )
    source = rule(says.format("a", 60_000), "a") + rule(says.format("b", 64_000), "b")
    async with host_supervisor(
        written(tmp_path, source + rule(says.format("c", 60_000), "c") + rule(says.format("d", 60_000), "d"))
    ) as host:
        fold_result = await folded(host, 2)
        assert fold_result.verdict.effects == ()
        assert [fault.whose for fault in fold_result.faults] == ["rule:b"]
        assert "more than 196,608 bytes" in fold_result.faults[0].message
        assert host.alive


async def test_a_host_that_ends_is_quoted(tmp_path: Path) -> None:
    ends = rule("print('the last', file=sys.stderr)\nprint('words')\nos._exit(3)", before="import os, sys")
    async with host_supervisor(written(tmp_path, ends)) as host:
        fold_result = await folded(host, 2)
    assert fold_result.faults == (
        EngineFault("rule:bad", "its host ended with status 3; it printed: the last words (rules/own.py:4)"),
    )


async def test_of_a_flood_the_end_is_kept_and_the_rest_is_counted() -> None:
    read, write = os.pipe()
    os.set_blocking(write, False)
    output, sent = Output(read), 0
    try:
        while output.dropped < 200_000:
            with suppress(BlockingIOError):
                sent += os.write(write, b"x" * 10_000)
            await asyncio.sleep(0)
        for _ in range(50):
            with suppress(BlockingIOError):
                sent += os.write(write, b"x" * 10_000)
            await asyncio.sleep(0)
        assert output.words() == "x" * 4096
        assert output.dropped <= 256 * 1024 + 65_536 < sent, "nobody reads on for ever"
    finally:
        output.close()
        os.close(read)
        os.close(write)


async def test_the_loop_turns_while_a_large_snapshot_is_encoded() -> None:
    turns = 0

    async def turn() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    turning = asyncio.create_task(turn(), name="turning")
    said = LogMatched(severity="error", lines=("ERROR " + "x" * 200,), count=1)
    told = at(1, state=grown([event(seq, said, f"/log/{seq}") for seq in range(1, 1_001)]))
    message = await full_snapshot(told)
    turning.cancel()
    assert turns >= 10
    assert FOLD.load(message["projections"], told.state.seq) == told.state


@pytest.mark.parametrize("size", [100, 4_000])
async def test_an_answer_in_time_counts_though_the_loop_was_held_up_until_after_it(
    size: int, tmp_path: Path
) -> None:
    slow = Settings.model_validate({"engine": {"deadline": "2s"}})
    wish = f"Effect(action='notify', key=f'k{{n}}', params={{'text': 'y' * {size}}})"
    long = f"return Verdict(tuple({wish} for n in range(15)), notes=tuple('x' * 1000 for _ in range(16)))"
    async with host_supervisor(written(tmp_path, rule(long)), at(1, settings=slow)) as host:
        folding = asyncio.create_task(host.fold(at(1, settings=slow), at(2, settings=slow)))
        await asyncio.sleep(0)
        time.sleep(2.5)
        verdict, _, faults, *_ = await folding
        assert (len(verdict.effects), len(verdict.notes), faults) == (15, 16, ())


async def test_projections_have_a_ticks_time_for_what_came_while_their_host_began(tmp_path: Path) -> None:
    engine = """
import sys, time
from pulse_core import Effect, Projection

host = sys.modules["__main__"].RuleHostChild
quick = host._history


def long_ago(self, request):
    answer = quick(self, request)
    self.budget.begin(time.monotonic() - 60)
    return answer


host._history = long_ago


def step(value, event):
    sum(range(300_000))
    return value + 1


async def shows(prev, curr, inner):
    return (await inner(prev, curr)).plus(Effect(action="note", key="seen-1", params={"own": curr.own["seen"]}))


PROJECTIONS = {"seen": Projection(0, step)}
RULES = [shows]
"""
    (tmp_path / "engine.py").write_text(engine)
    events = [error(1), error(2)]
    async with host_supervisor(Revision("0" * 40, str(tmp_path))) as host:
        host.feed(events)
        fold_result = await host.fold(at(5, grown(events)), at(6, grown(events)))
        assert (seen(fold_result), fold_result.faults) == ({"own": 2}, ())
