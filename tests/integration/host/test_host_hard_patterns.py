"""A pattern that backtracks without end, and a neighbour who knows it: nobody is frozen, nobody is taken for dead."""

import asyncio
import os
import sys
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Iterator
from pathlib import Path

import pytest

from pulse_adapters.host.children import Children
from pulse_adapters.host.examination import Examination, Question
from pulse_adapters.host.examiner import FOUND, MISSED, TOO_LONG
from pulse_adapters.host.judge import Judge
from pulse_adapters.host.proc import command_line, started
from pulse_adapters.host.restart_process import RestartParams, RestartProcess
from pulse_adapters.host.spawn import Spawner
from pulse_adapters.host.stop_process import StopParams, StopProcess
from pulse_adapters.host.table import LinuxProcessTable
from pulse_core.model.errors import PulseError
from pulse_core.ports import ProcessId, ProcessObservation
from pulse_core.settings import ProcessSettings, Settings
from tests.integration.host.host_scene import bury, child, until, wished

STALL = 0.05
"""Seconds of CPU time that the event loop may be held at most; five milliseconds are usual."""

SLEEPER = (sys.executable, "-c", "import time; time.sleep(1000)")
LINE = "a" * 3_000 + "!"


class Hostile:
    """A word, a pattern with it that never ends, and a process with a command line made for it."""

    def __init__(self) -> None:
        self.word = f"w{uuid.uuid4().hex}"
        self.pattern = f"{self.word} (a+)+$"
        self.pid = child(*SLEEPER, self.word, LINE)

    def end(self) -> None:
        os.kill(self.pid, 9)
        bury(self.pid)


@pytest.fixture
async def hostile(mark: str) -> AsyncIterator[Hostile]:
    one = Hostile()
    await until(lambda: one.word in command_line(one.pid))
    yield one
    if started(one.pid):
        one.end()


@pytest.fixture
def told() -> list[tuple[str, str]]:
    return []


@pytest.fixture
async def table(spawner: Spawner, told: list[tuple[str, str]]) -> AsyncIterator[LinuxProcessTable]:
    table = LinuxProcessTable(spawner, failed=lambda whose, what: told.append((whose, what)))
    yield table
    table.close()


@pytest.fixture
def other() -> Iterator[str]:
    """The word of another process, which is well."""
    word = f"w{uuid.uuid4().hex}"
    pid = child(*SLEEPER, word)
    yield word
    os.kill(pid, 9)
    bury(pid)


def guarded(name: str, pattern: str) -> ProcessSettings:
    return ProcessSettings.model_validate({"name": name, "start": ["sleep", "1000"], "match": pattern})


async def longest_stall(work: Awaitable[object]) -> float:
    """How long the event loop was held at most while this was done, in seconds of its own CPU time."""
    gaps = [0.0]

    async def tick() -> None:
        last = time.thread_time()
        while True:
            await asyncio.sleep(0)
            now = time.thread_time()
            gaps.append(now - last)
            last = now

    ticking = asyncio.create_task(tick())
    try:
        await work
    finally:
        ticking.cancel()
        await asyncio.wait([ticking])
    return max(gaps)


async def look(
    table: LinuxProcessTable, *processes: ProcessSettings, **known: ProcessId
) -> dict[str, ProcessObservation]:
    return dict(await table.look(processes, known))


async def looked_through(table: LinuxProcessTable, process: ProcessSettings) -> ProcessObservation:
    """The sight once all searches are over, or have used up their time."""
    sight = (await look(table, process))["it"]
    deadline = time.monotonic() + 5
    while "is not over" in sight.detail and time.monotonic() < deadline:
        sight = (await look(table, process))["it"]
    return sight


async def test_the_loop_is_not_held_and_others_are_seen(
    table: LinuxProcessTable, hostile: Hostile, other: str
) -> None:
    sights: dict[str, ProcessObservation] = {}

    async def looks() -> None:
        for _ in range(5):
            sights.update(await look(table, guarded("it", hostile.pattern), guarded("other", other)))

    assert await longest_stall(looks()) < STALL
    assert len(sights["other"].found) == 1
    assert (sights["it"].found, sights["it"].busy) == ((), True)


async def test_what_is_not_known_is_told_once_with_name_and_pattern(
    table: LinuxProcessTable, hostile: Hostile, told: list[tuple[str, str]]
) -> None:
    process = guarded("it", hostile.pattern)
    sight = await looked_through(table, process)
    assert f"process {hostile.pid}" in sight.detail
    await looked_through(table, process)
    (whose, message), *more = told
    assert more == []
    assert whose == "process:it"
    assert repr(hostile.pattern) in message
    assert f"process {hostile.pid} " in message
    assert "whether it is it" in message


async def test_what_was_too_long_is_tried_again_only_after_a_while(
    mark: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    judge, slow = Judge(), Question("(a+)+$", LINE)
    await judge.ask([slow])
    await until(lambda: judge.recall(slow) and not judge.running)
    await judge.ask([slow])
    assert not judge.running
    monkeypatch.setattr("pulse_adapters.host.judge.AGAIN", 0.0)
    asking = asyncio.create_task(judge.ask([slow]))
    await until(lambda: judge.running)
    await asking
    judge.close()


async def test_it_is_clear_again_when_the_neighbour_is_gone(
    table: LinuxProcessTable, hostile: Hostile
) -> None:
    process = guarded("it", hostile.pattern)
    await looked_through(table, process)
    assert table.in_doubt("it")
    hostile.end()
    assert (await look(table, process))["it"].busy is False
    assert not table.in_doubt("it")


async def test_who_matches_is_found_beside_who_is_not_known(
    table: LinuxProcessTable, hostile: Hostile
) -> None:
    pid = child(*SLEEPER, hostile.word, "a" * 200)
    try:
        await until(lambda: hostile.word in command_line(pid))
        sight = await looked_through(table, guarded("it", hostile.pattern))
        assert ([one.pid for one in sight.found], sight.busy) == ([pid], False)
    finally:
        os.kill(pid, 9)
        bury(pid)


async def test_a_known_process_is_believed_while_its_own_line_is_too_long(
    table: LinuxProcessTable, hostile: Hostile
) -> None:
    known = ProcessId(hostile.pid, started(hostile.pid) or 0)
    for _ in range(4):
        sight = (await look(table, guarded("it", hostile.pattern), it=known))["it"]
        assert sight.found == (known,)


async def test_nothing_is_started_or_stopped_in_doubt(
    table: LinuxProcessTable, spawner: Spawner, hostile: Hostile, tmp_path: Path
) -> None:
    settings = Settings(process=(guarded("it", hostile.pattern),))
    await looked_through(table, settings.process[0])
    restarter = RestartProcess(lambda: settings, table, dict, spawner, tmp_path / "logs")
    effect, event = wished(
        "restart-process", process="it", instead_of={"pid": 2**22 + 1, "started": 1}, if_dead=True, fresh=True
    )
    with pytest.raises(PulseError, match=f"nothing was started.*{hostile.pid}"):
        await restarter.execute(effect, RestartParams.model_validate(effect.params), event)
    effect, event = wished("stop-process", process="it")
    stopper = StopProcess(lambda: settings, table, dict, spawner)
    with pytest.raises(PulseError, match="nothing was ended"):
        await stopper.execute(effect, StopParams.model_validate(effect.params), event)
    assert started(hostile.pid)


async def test_a_heavy_pattern_on_a_good_line_finds_what_re_finds(mark: str) -> None:
    judge = Judge()
    lines = ["a" * 30, "a" * 25 + " \udcff\ud800é", "b"]
    questions = [Question("(a+)+ ?$", line) for line in lines] + [Question("(?i)É$", lines[1])]
    deadline = time.monotonic() + 5
    while any(judge.recall(one) is None for one in questions) and time.monotonic() < deadline:
        await judge.ask(questions)
    assert [answer and answer.found for answer in map(judge.recall, questions)] == [True, None, False, True]
    await until(lambda: not judge.running)
    judge.close()


async def test_the_child_says_what_takes_too_long_and_goes_on(mark: str) -> None:
    running: set[int] = set()
    children = Children()
    with Examination(children, running) as child:
        asked = [Question("(a+)+$", LINE), Question("a", "a"), Question("a", "b")]
        assert [await child.ask(one) for one in asked] == [TOO_LONG, FOUND, MISSED]
    await until(lambda: not running)
    children.close()


async def test_a_child_that_was_killed_costs_one_answer(mark: str) -> None:
    judge = Judge()
    questions = [Question("(a+)+$", "b" * length) for length in range(30, 33)]
    asking = asyncio.create_task(judge.ask(questions))
    await until(lambda: judge.running)
    os.kill(next(iter(judge.running)), 9)
    await asking
    await until(lambda: all(map(judge.recall, questions)))
    answers = [answer.found for answer in map(judge.recall, questions) if answer]
    assert sorted(answers, key=str) == [False, False, None]
    judge.close()


async def test_a_judge_that_is_closed_leaves_no_child(mark: str) -> None:
    judge = Judge()
    asking = asyncio.create_task(judge.ask([Question("(a+)+$", LINE)]))
    await until(lambda: judge.running)
    (pid,) = judge.running
    judge.close()
    await asking
    await until(lambda: not started(pid))
