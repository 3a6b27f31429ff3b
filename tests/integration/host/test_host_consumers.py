"""Who may be stopped when memory is short, and who never: real processes."""

import asyncio
import os
import sys
import threading
import time
import uuid
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from typing import Any
from unittest.mock import ANY

import pytest
from pydantic import ValidationError

from pulse_adapters.host import memory_consumers
from pulse_adapters.host.lives import Lives
from pulse_adapters.host.memory_consumers import MemoryConsumers, memory_of, protected_pids
from pulse_adapters.host.process_executors import StopProcess
from pulse_adapters.host.process_table import LinuxProcessTable
from pulse_adapters.host.spawner import Spawner
from pulse_adapters.host.system_watcher import SystemResource
from pulse_adapters.workers.proc import ProcStat, command_line, is_alive, live_processes, read_stat
from pulse_core.actions import StopParams
from pulse_core.model.errors import PulseError, Refused
from pulse_core.model.moment import Moment
from pulse_core.model.vitals import Sample, Window
from pulse_core.ports.executor import Result
from pulse_core.ports.host import ProcessId
from pulse_core.projections.conditions import Condition, Conditions
from pulse_core.projections.state import State
from pulse_core.settings.groups import PATTERN_CHECK
from pulse_core.settings.settings import Settings
from tests.integration.host.host_scene import until, wished

HOLDS = "import sys, time; held = bytearray(int(sys.argv[2]) << 20); print(1, flush=True); time.sleep(1000)"
LEAVES = f"""
import subprocess, sys
argv, out = [sys.executable, "-c", {HOLDS!r}, *sys.argv[2:]], open(sys.argv[1], "w")
print(subprocess.Popen(argv, stdout=out, start_new_session=True).pid)
"""
"""Starts somebody and leaves: its orphan's parent is init, as that of anybody's process."""

LEADS = f"""
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", {HOLDS!r}, *sys.argv[2:]], start_new_session=True)
with open(sys.argv[1], "w") as file:
    file.write(str(child.pid))
time.sleep(1000)
"""
"""Starts somebody, and goes on beside it."""


class Crowd:
    """Processes that bear a word in their command line, cut loose from this one as anybody's are."""

    def __init__(self, spawner: Spawner, place: Path) -> None:
        self.spawner, self.place = spawner, place
        self.word = f"w{uuid.uuid4().hex}"
        self.settings = Settings.model_validate({"resources": {"stop": [self.word]}})
        self.known: dict[str, ProcessId] = {}

    def decide(self, **chosen: Any) -> None:
        self.settings = Settings.model_validate({"resources": {"stop": [self.word]}, **chosen})

    async def one(self, word: str = "", megabytes: int = 1) -> ProcessId:
        """Somebody who is none of Pulse's own children."""
        out = self.place / uuid.uuid4().hex
        argv = [sys.executable, "-c", LEAVES, str(out), word or self.word, str(megabytes)]
        said = await self.spawner.run(argv, timeout=60)
        pid = int(said.output)
        await until(lambda: out.exists() and out.read_text())
        seen = read_stat(pid)
        assert seen is not None
        return seen.found

    def consumers(self) -> MemoryConsumers:
        return MemoryConsumers(lambda: self.settings, lambda: self.known, lambda: self.spawner.running)

    async def stop(self, found: ProcessId, table: LinuxProcessTable, pattern: str = "") -> Result:
        executor = StopProcess(lambda: self.settings, table, lambda: self.known, Lives(self.spawner, Path()))
        effect, event = wished("stop-process", consumer={**found._asdict(), "pattern": pattern or self.word})
        params = StopParams.model_validate(effect.params)
        executor.check(params)
        return await executor.execute(effect, params, event)


@pytest.fixture
async def crowd(spawner: Spawner, tmp_path: Path) -> Crowd:
    return Crowd(spawner, tmp_path)


async def told(crowd: Crowd) -> Mapping[int, Mapping[str, Any]]:
    consumers = crowd.consumers()
    return {one["pid"]: one for one in await consumers.largest()}


async def test_the_largest_are_told_first_with_what_they_hold(crowd: Crowd) -> None:
    small, large = await crowd.one(), await crowd.one(megabytes=60)
    found = await told(crowd)
    assert list(found) == [large.pid, small.pid]
    assert found[large.pid]["rss"] - found[small.pid]["rss"] > 50 << 20
    assert {**found[large.pid]} | {"rss": 0, "swap": 0} == {
        "pid": large.pid, "started": large.started, "rss": 0, "swap": 0,
        "name": os.path.basename(sys.executable), "pattern": crowd.word,
    }  # fmt: skip


async def test_however_many_processes_there_are_they_are_looked_at_beside_the_loop(
    crowd: Crowd, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads = list[threading.Thread]()
    for looks in (live_processes, memory_of):

        def noted(*asked: Any, looks: Callable[..., Any] = looks) -> Any:
            threads.append(threading.current_thread())
            return looks(*asked)

        monkeypatch.setattr(memory_consumers, looks.__name__, noted)
    it = await crowd.one()
    assert await told(crowd) == {it.pid: ANY}
    assert len(threads) == 2
    assert threading.main_thread() not in threads


async def test_who_matches_nothing_is_not_told(crowd: Crowd) -> None:
    await crowd.one("another")
    assert await told(crowd) == {}


async def test_the_guarded_are_never_told_however_they_are_known(crowd: Crowd) -> None:
    by_pid, by_pattern, other = await crowd.one(), await crowd.one(f"{crowd.word}-guarded"), await crowd.one()
    crowd.known = {"a": by_pid}
    crowd.decide(process=[
        {"name": "a", "start": ["x"]},
        {"name": "b", "start": ["x"], "match": f"{crowd.word}-guarded"},
    ])  # fmt: skip
    assert list(await told(crowd)) == [other.pid]
    assert is_alive(by_pattern)


async def test_nobody_is_told_while_a_guarded_process_can_not_be_searched_for(crowd: Crowd) -> None:
    await crowd.one()
    process = {"name": "a", "start": ["x"], "match": f"{crowd.word}(?!-guarded)"}
    raw = {"resources": {"stop": [crowd.word]}, "process": [process]}
    crowd.settings = Settings.model_validate(raw, context={PATTERN_CHECK: None})
    assert await told(crowd) == {}


async def test_who_was_guarded_and_is_not_in_the_settings_any_more_may_be_stopped(crowd: Crowd) -> None:
    it = await crowd.one()
    crowd.known = {"a": it}
    assert list(await told(crowd)) == [it.pid]


async def test_the_parent_of_a_guarded_process_is_never_told(crowd: Crowd) -> None:
    """Ending it would end what is guarded."""
    out = crowd.place / "child"
    argv = [sys.executable, "-c", LEADS, str(out), crowd.word, "1"]
    parent = await crowd.spawner.start(argv, output=crowd.place / "log")
    await until(lambda: out.exists() and out.read_text())
    child = read_stat(int(out.read_text()))
    assert child is not None
    assert protected_pids([child.pid], live_processes()) >= {parent.pid, child.pid}


async def test_pulse_and_what_runs_for_it_are_never_told(crowd: Crowd) -> None:
    """This test's process stands for Pulse; its own child, for a helper of it."""
    argv = [sys.executable, "-c", HOLDS, crowd.word, "1"]
    running = asyncio.create_task(crowd.spawner.run(argv, timeout=60))
    helper = await asyncio.create_subprocess_exec(*argv, stdout=asyncio.subprocess.PIPE)
    assert helper.stdout is not None
    await helper.stdout.readline()
    await until(lambda: crowd.spawner.running)
    assert await told(crowd) == {}
    helper.kill()
    await helper.communicate()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running


async def test_a_guarded_process_that_pulse_started_hides_its_workers_from_nobody(crowd: Crowd) -> None:
    """What a guarded process has started is not guarded; but the process itself is Pulse's own child."""
    pid_file = crowd.place / "worker"
    argv = [sys.executable, "-c", LEADS, str(pid_file), crowd.word, "1"]
    guarded = await crowd.spawner.start(argv, output=crowd.place / "log")
    await until(lambda: pid_file.exists() and pid_file.read_text())
    worker = int(pid_file.read_text())
    await until(lambda: crowd.word in command_line(worker))
    crowd.known = {"a": guarded}
    crowd.decide(process=[{"name": "a", "start": ["x"]}])
    assert list(await told(crowd)) == [worker]


def tree(*rows: tuple[int, int, int, int]) -> list[ProcStat]:
    """Processes as (pid, parent, group, session)."""
    return [ProcStat(pid, "S", parent, group, session, 0, 1, 1) for pid, parent, group, session in rows]


@pytest.mark.parametrize(
    ("rows", "guarded", "spared"),
    [
        ([(7, 1, 7, 7), (8, 1, 8, 8)], [7], {7}),
        ([(7, 1, 7, 7), (8, 7, 8, 8), (9, 8, 9, 9)], [9], {7, 8, 9}),
        ([(7, 1, 7, 7), (8, 1, 7, 7)], [8], {7, 8}),
        ([(7, 1, 7, 7), (8, 1, 8, 7)], [8], {7, 8}),
        ([(7, 1, 7, 7), (8, 7, 7, 7)], [7], {7}),
    ],
)
def test_what_would_take_the_guarded_along_is_spared(
    rows: list[tuple[int, int, int, int]], guarded: list[int], spared: set[int]
) -> None:
    pids = {row[0] for row in rows}
    assert protected_pids(guarded, tree(*rows)) & pids == spared


def test_the_first_process_and_this_one_are_always_spared() -> None:
    assert protected_pids([], live_processes()) >= {1, os.getpid(), os.getppid()}


def test_what_a_process_holds_is_read_and_a_missing_one_holds_nothing() -> None:
    held = memory_of(os.getpid())
    assert held is not None
    assert held.rss > 5 << 20
    assert held.uid == os.geteuid()
    assert memory_of(2**22 + 1) is None
    kernel = [seen.pid for seen in live_processes() if seen.of_kernel]  # none where this is a container
    assert {memory_of(pid) for pid in kernel} <= {None}


# Stopping one


async def test_this_very_one_is_stopped_and_no_other(crowd: Crowd, table: LinuxProcessTable) -> None:
    one, other = await crowd.one(), await crowd.one()
    assert (await crowd.stop(one, table)).data == {"ended": [one.pid]}
    assert (is_alive(one), is_alive(other)) == (False, True)


async def test_who_has_got_the_pid_since_is_let_live(crowd: Crowd, table: LinuxProcessTable) -> None:
    one = await crowd.one()
    gone = ProcessId(one.pid, one.started - 1)
    assert (await crowd.stop(gone, table)).data == {"ended": [], "already": True}
    assert is_alive(one)


async def test_who_became_guarded_meanwhile_is_let_live(crowd: Crowd, table: LinuxProcessTable) -> None:
    one = await crowd.one()
    crowd.known = {"a": one}
    crowd.decide(process=[{"name": "a", "start": ["x"]}])
    with pytest.raises(PulseError, match=f"process {one.pid} was let live"):
        await crowd.stop(one, table)
    assert is_alive(one)


async def test_who_does_not_match_any_more_is_let_live(crowd: Crowd, table: LinuxProcessTable) -> None:
    one = await crowd.one("another")
    with pytest.raises(PulseError, match="does not match any more"):
        await crowd.stop(one, table)
    assert is_alive(one)


async def test_a_pattern_that_is_not_in_the_settings_is_refused(
    crowd: Crowd, table: LinuxProcessTable
) -> None:
    one = await crowd.one()
    with pytest.raises(Refused, match="add it to allow this"):
        await crowd.stop(one, table, pattern="python")
    assert is_alive(one)


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"process": "a", "consumer": {"pid": 5, "started": 1, "pattern": "x"}},
        {"consumer": {"pid": 1, "started": 1, "pattern": "x"}},
        {"consumer": {"pid": 5, "pattern": "x"}},
    ],
)
def test_broken_params_are_refused(params: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        StopParams.model_validate(params)


# The sense


def conditions(*names: str) -> State:
    then = Moment(0, "b", 0)
    return State(conditions=Conditions({name: Condition(then, "high", then, "it is so") for name in names}))


@pytest.fixture
async def sense(crowd: Crowd) -> AsyncIterator[Callable[..., SystemResource]]:
    made: list[SystemResource] = []

    def make(facts: State, window: Window) -> SystemResource:
        known = (lambda: facts, lambda: window)
        made.append(
            SystemResource(lambda: crowd.settings, lambda: 0, crowd.spawner, crowd.consumers(), *known)
        )
        return made[-1]

    yield make
    for one in made:
        await one.__aexit__(None, None, None)


@pytest.mark.parametrize(
    ("names", "looked"),
    [
        (["memory"], True),
        (["swap"], True),
        (["pressure:memory"], True),
        (["pressure:io", "disk:/"], False),
        ([], False),
    ],
)
async def test_consumers_are_looked_for_only_while_memory_is_short(
    crowd: Crowd, sense: Callable[..., SystemResource], names: list[str], looked: bool
) -> None:
    one = await crowd.one()
    data = (await sense(conditions(*names), Window()).collect()).data
    assert [found["pid"] for found in data.get("consumers", ())] == ([one.pid] if looked else [])


async def test_the_sense_concludes_from_what_it_measured_and_what_was_kept(
    crowd: Crowd, sense: Callable[..., SystemResource]
) -> None:
    low = {"raise": 0.0001, "clear": 0.00005}
    crowd.decide(resources={"memory": {**low, "for": "30s"}, "disk": {"path": "/", **low}})
    first = await sense(State(), Window()).collect()
    assert {draft.subject for draft in first.conclusions} >= {"disk:/"}
    since, _ = first.data["over"]["memory"]
    kept = {"over": {"memory": [[since[0], since[1], since[2] - 31_000_000], since]}}
    window = Window((Sample(1, "system-resource", Moment(*since), kept),))
    second = await sense(State(), window).collect()
    assert "memory" in {draft.subject for draft in second.conclusions}


async def test_every_disk_with_a_bound_is_sampled(
    crowd: Crowd, sense: Callable[..., SystemResource], tmp_path: Path
) -> None:
    crowd.decide(resources={"disk": [{"path": str(tmp_path)}]}, watch={"disks": ["/"]})
    data = (await sense(State(), Window()).collect()).data
    assert list(data["disks"]) == ["/", str(tmp_path)]


@pytest.mark.wall_clock
async def test_a_look_at_everybody_costs_little(crowd: Crowd) -> None:
    await crowd.one()
    consumers = crowd.consumers()
    await consumers.largest()
    began = time.process_time()
    await consumers.largest()
    assert time.process_time() - began < 0.2
