"""What a start leaves behind: the process itself in the background, or the remains of a failed start."""

import asyncio
import os
import time
import uuid
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from pulse_adapters.host import process_executors
from pulse_adapters.host.lives import Lives
from pulse_adapters.host.marked_processes import find_bearers
from pulse_adapters.host.process_executors import RestartProcess, StopProcess
from pulse_adapters.host.process_table import LinuxProcessTable
from pulse_adapters.host.spawner import Spawner
from pulse_adapters.workers.proc import command_line, has_marker, is_alive, live_processes, read_stat
from pulse_core.actions import RestartParams, StopParams
from pulse_core.ports.executor import Result
from pulse_core.ports.host import Life, ProcessId, ProcessObservation
from pulse_core.settings.processes import ProcessSettings, RestartSettings
from pulse_core.settings.settings import Settings
from tests.integration.host.host_scene import until, wished

Start = Callable[[str], Awaitable[ProcessId]]
Restart = Callable[..., Awaitable[Result]]


def process(script: str, **more: object) -> ProcessSettings:
    return ProcessSettings.model_validate({"name": "it", "start": ["sh", "-c", script], **more})


@pytest.fixture
def effect() -> str:
    return str(uuid.uuid4())


@pytest.fixture
def start(spawner: Spawner, log: Path, effect: str) -> Start:
    return lambda script: spawner.start(["sh", "-c", script], output=log, env={"PULSE_EFFECT": effect})


def carriers(effect: str, program: str = "sleep") -> list[ProcessId]:
    """The live processes of a start that are this program by now."""
    return [
        one.found
        for one in live_processes()
        if has_marker(one.pid, effect) and command_line(one.pid)[:1] == [program]
    ]


def _with(argument: str, some: list[ProcessId]) -> list[ProcessId]:
    return [one for one in some if command_line(one.pid)[1:] == [argument]]


async def over(start: ProcessId) -> None:
    await until(lambda: read_stat(start.pid) is None)


async def seen(table: LinuxProcessTable, it: ProcessSettings, known: ProcessId) -> ProcessObservation:
    return (await table.look([it], {"it": known}))["it"]


async def test_who_exits_at_once_with_0_has_gone_into_the_background(
    table: LinuxProcessTable, start: Start, effect: str
) -> None:
    first = await start("sleep 1000 & setsid sleep 1000 & exit 0")
    await over(first)
    await until(lambda: len(carriers(effect)) == 2)
    sight = await seen(table, process("x"), first)
    assert set(sight.found) == set(carriers(effect))
    leader = read_stat(sight.found[0].pid)
    assert leader is not None
    assert leader.session == leader.pid  # who has a session of its own stands for it, the other one helps
    assert f"left in the background by {first.pid}" in sight.detail


async def test_who_has_the_argv_of_the_start_stands_for_it_before_a_helper_with_a_session_of_its_own(
    table: LinuxProcessTable, spawner: Spawner, log: Path, effect: str
) -> None:
    it = process("setsid sleep 1001 & (sleep 1000; :) & exit 0")
    first = await spawner.start(it.start, output=log, env={"PULSE_EFFECT": effect})
    await over(first)
    await until(lambda: len(carriers(effect)) == 2)
    (main,), (helper,) = carriers(effect, "sh"), _with("1001", carriers(effect))
    assert (await seen(table, it, first)).found[:2] == (main, helper)


async def test_who_has_forked_the_others_stands_for_it_though_all_began_in_the_same_moment(
    table: LinuxProcessTable, spawner: Spawner, log: Path, effect: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    it = process("((sleep 1001; :) & setsid sleep 1002 & (sleep 1003; :) & sleep 1000; :) & exit 0")
    first = await spawner.start(it.start, output=log, env={"PULSE_EFFECT": effect})
    await over(first)
    await until(lambda: len(carriers(effect)) == 4)
    (own,) = _with("1000", carriers(effect))
    parent = read_stat(own.pid)
    assert parent is not None
    real = await find_bearers(effect=effect, anybody=True)

    async def backwards(**_: object) -> tuple[ProcessId, ...]:
        return real[::-1]

    monkeypatch.setattr("pulse_adapters.host.guarded_processes.find_bearers", backwards)
    assert (await seen(table, it, first)).found[0].pid == parent.parent


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become somebody else")
async def test_who_has_become_another_user_in_the_background_is_it_if_the_settings_name_that_user(
    spawner: Spawner, start: Start, effect: str
) -> None:
    first = await start("setsid setpriv --reuid=nobody --clear-groups sleep 1000 & exit 0")
    await over(first)
    await until(lambda: carriers(effect))
    unnamed, named = LinuxProcessTable(spawner), LinuxProcessTable(spawner)
    try:
        sight = await seen(unnamed, process("x"), first)
        assert (sight.found, 'user = "nobody" would allow it' in sight.ended) == ((), True)
        assert (await seen(named, process("x", user="nobody"), first)).found == tuple(carriers(effect))
    finally:
        unnamed.close()
        named.close()


@pytest.mark.parametrize("is_new", [True, False], ids=["fork", "helper"])
async def test_who_takes_its_time_between_two_forks_hands_over_with_the_second_one(
    spawner: Spawner, log: Path, tmp_path: Path, effect: str, monkeypatch: pytest.MonkeyPatch, is_new: bool
) -> None:
    monkeypatch.setattr("pulse_adapters.host.process_table._HANDED_TICKS", 100_000 if is_new else -1)
    it = process("((sleep 1000; :) & read go < go) & exit 0")
    os.mkfifo(tmp_path / "go")
    first = await spawner.start(it.start, cwd=str(tmp_path), output=log, env={"PULSE_EFFECT": effect})
    table = LinuxProcessTable(
        spawner, tmp_path, Lives(spawner, tmp_path, lambda: {"it": Life(effect, first)})
    )
    try:
        await over(first)
        await until(lambda: carriers(effect))
        middle = min(carriers(effect, "sh"), key=lambda one: one.pid)
        table.hold((await seen(table, it, middle)).found, lambda found: None)
        (tmp_path / "go").write_text("go\n")
        await over(middle)
        sight = await seen(table, it, middle)
        assert sight.found == (tuple(carriers(effect, "sh")) if is_new else ())
    finally:
        table.close()


async def test_of_many_starts_that_end_at_once_none_waits_for_what_another_has_left(
    spawner: Spawner, table: LinuxProcessTable, log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [f"it-{number}" for number in range(20)]
    starts = {
        name: await spawner.start(["true"], output=log, env={"PULSE_EFFECT": str(uuid.uuid4())})
        for name in names
    }
    for start in starts.values():
        await over(start)
    together = asyncio.Barrier(len(names))

    async def met(**how: Any) -> tuple[ProcessId, ...]:
        await together.wait()
        return await find_bearers(**how)

    monkeypatch.setattr("pulse_adapters.host.guarded_processes.find_bearers", met)
    settings = [ProcessSettings(name=name, start=["true"]) for name in names]
    async with asyncio.timeout(20):
        sights = await table.look(settings, starts)
    assert not any(sight.found for sight in sights.values())


@pytest.mark.parametrize("end", ["exit 3", "kill -9 $$"])
async def test_who_ends_otherwise_is_dead_whatever_it_leaves(
    table: LinuxProcessTable, start: Start, effect: str, end: str
) -> None:
    first = await start(f"setsid sleep 1000 & {end}")
    await over(first)
    await until(lambda: carriers(effect))
    assert (await seen(table, process("x"), first)).found == ()


@pytest.mark.parametrize("fork", ["setsid sleep 1000", "(sleep 1000; :)"], ids=["helper", "fork"])
async def test_who_lives_longer_than_a_launcher_hands_over_to_a_fork_of_itself_alone_and_within_its_grace(
    table: LinuxProcessTable,
    restart: Restart,
    spawner: Spawner,
    log: Path,
    effect: str,
    monkeypatch: pytest.MonkeyPatch,
    fork: str,
) -> None:
    monkeypatch.setattr("pulse_adapters.host.guarded_processes.LAUNCH_S", 0.05)
    # Long enough for a machine with much else to do, which notes late that it has begun.
    it, is_fork = process(f"{fork} & sleep 0.5; exit 0"), fork.startswith("(")
    first = await spawner.start(it.start, output=log, env={"PULSE_EFFECT": effect})
    await over(first)
    await until(lambda: carriers(effect))
    it = it.model_copy(update={"restart": RestartSettings(grace=600_000_000)})
    brief = it.model_copy(update={"restart": RestartSettings(grace=50_000)})
    assert (await seen(table, brief, first)).found == ()
    assert bool((await seen(table, it, first)).found) == is_fork
    assert ("already" in (await restart(it, first)).data) == is_fork


async def test_what_another_start_has_left_is_not_mistaken_for_it(
    table: LinuxProcessTable, spawner: Spawner, start: Start, log: Path
) -> None:
    env = {"PULSE_EFFECT": "another", "PULSE_PROCESS": "it@/home"}
    await spawner.start(["sleep", "1000"], output=log, env=env)
    first = await start("exit 0")
    await over(first)
    assert (await seen(table, process("x"), first)).found == ()


@pytest.fixture
def restart(spawner: Spawner, table: LinuxProcessTable, tmp_path: Path, effect: str) -> Restart:
    async def restarted(it: ProcessSettings, dead: ProcessId, **more: object) -> Result:
        lives = Lives(spawner, tmp_path, lambda: {"it": Life(effect, dead)})
        executor = RestartProcess(
            lambda: Settings(process=(it,)), table, lambda: {"it": dead}, lives, tmp_path / "logs"
        )
        params = {"instead_of": {"pid": dead.pid, "started": dead.started}, "if_dead": True, "fresh": True}
        wish, event = wished("restart-process", process="it", **{**params, **more})
        return await executor.execute(wish, RestartParams.model_validate(wish.params), event)

    return restarted


async def test_a_server_that_has_not_written_its_pid_file_yet_is_no_dead_one(
    spawner: Spawner, start: Start, effect: str, tmp_path: Path
) -> None:
    """Who goes into the background with status 0 may write the file a moment after that."""
    script, file = f"setsid sleep 1000 & while [ ! -e {tmp_path}/go ]; do sleep 0.01; done", tmp_path / "pid"
    first = await start(script)
    await until(lambda: carriers(effect))
    (tmp_path / "go").touch()
    await over(first)
    table = LinuxProcessTable(
        spawner, tmp_path, Lives(spawner, tmp_path, lambda: {"it": Life(effect, first)})
    )
    patient = process(script, pid_file=str(file), restart={"grace": "1h"})
    early = await seen(table, patient, first)
    assert (early.found, early.busy) == ((), True)
    assert early.detail.endswith("; what its start left in the background has time to come up")
    (server,) = carriers(effect)
    file.write_text(f"{server.pid}\n")
    assert (await seen(table, patient, first)).found == (server,)
    file.unlink()
    os.kill(server.pid, 9)
    await until(lambda: not is_alive(server))
    late = await seen(table, patient, first)
    assert (late.found, late.busy, late.ended) == ((), False, "exited with status 0")


async def test_a_launcher_is_not_the_server_before_the_pid_file_says_so(
    spawner: Spawner, effect: str, log: Path, tmp_path: Path
) -> None:
    """Its end with status 0 is no death; nor is anything started beside it."""
    script, file = f"setsid sleep 1000 & while [ ! -e {tmp_path}/go ]; do sleep 0.01; done", tmp_path / "pid"
    patient, lives = process(script, pid_file=str(file), restart={"grace": "1h"}), dict[str, Life]()
    held = Lives(spawner, tmp_path, lambda: lives)
    first = await spawner.start(patient.start, output=log, env=held.marks("it", effect))
    lives["it"] = Life(effect, first)
    await until(lambda: carriers(effect))
    table = LinuxProcessTable(spawner, tmp_path, held)
    for known in (first, first._replace(pid=2**22)):
        early = await seen(table, patient, known)
        assert (early.found, early.busy) == ((first,), True)
        assert early.detail.endswith(f"process {first.pid} is alive, and has time to have it written")
    late = patient.model_copy(update={"restart": RestartSettings(grace=1)})  # nobody writes it, as it seems
    assert ((sight := await seen(table, late, first)).found, sight.busy) == ((first,), False)
    (server,) = (one for one in carriers(effect) if command_line(one.pid) == ["sleep", "1000"])
    file.write_text(f"{server.pid}\n")
    assert ((sight := await seen(table, patient, first)).found, sight.busy) == ((server,), False)
    file.write_text(f"{first.pid}\n")
    assert ((sight := await seen(table, patient, first)).found, sight.busy) == ((first,), False)


@pytest.mark.parametrize("fresh", [True, False])
@pytest.mark.parametrize(
    "way", [{}, {"tcp": "127.0.0.1:1"}, {"pid_file": "/no/such/file"}], ids=["", "tcp", "pid file"]
)
async def test_what_is_coming_up_in_the_background_is_not_started_again(
    restart: Restart, start: Start, effect: str, way: dict[str, str], fresh: bool
) -> None:
    first = await start("setsid sleep 1000 & exit 0")
    await over(first)
    await until(lambda: carriers(effect))
    result = await restart(process("exit 7", **way), first, fresh=fresh)
    (left,) = carriers(effect)
    assert result.data == {"already": True, "pid": left.pid, "started": left.started}


@pytest.mark.parametrize("fresh", [True, False])
async def test_the_remains_of_a_failed_start_are_ended_before_the_next(
    restart: Restart, start: Start, effect: str, fresh: bool
) -> None:
    first = await start("setsid sleep 1000 & exit 3")
    await over(first)
    await until(lambda: carriers(effect))
    result = await restart(process("exec sleep 1000"), first, fresh=fresh)
    assert carriers(effect) == []
    assert is_alive(ProcessId(result.data["pid"], result.data["started"]))


@pytest.mark.parametrize("kill", ["tree", "main"])
async def test_what_a_process_has_detached_from_itself_outlives_it_only_where_that_is_wanted(
    restart: Restart, start: Start, effect: str, kill: str
) -> None:
    first = await start("setsid sleep 1000 & while :; do sleep 0.01; done")
    detached = list[ProcessId]()
    await until(lambda: detached.extend(_with("1000", carriers(effect))) or detached)
    os.kill(first.pid, 9)
    await over(first)
    await restart(process("exec sleep 1000", kill=kill), first)
    assert [is_alive(one) for one in detached] == [kill == "main"]


async def test_a_person_gets_what_is_in_the_background_restarted(
    restart: Restart, start: Start, effect: str
) -> None:
    first = await start("setsid sleep 1000 & exit 0")
    await over(first)
    await until(lambda: carriers(effect))
    result = await restart(process("exec sleep 1000"), first, instead_of=None, if_dead=False)
    assert carriers(effect) == []
    assert is_alive(ProcessId(result.data["pid"], result.data["started"]))


async def test_a_stop_ends_who_ignores_sigterm(
    spawner: Spawner, table: LinuxProcessTable, log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process_executors, "_SOFT_S", 0.2)
    it = process("x")
    deaf = await spawner.start(
        ["sh", "-c", "trap '' TERM; echo ready; while :; do sleep 0.01; done"], output=log
    )
    await until(lambda: log.exists() and log.read_text())
    executor = StopProcess(
        lambda: Settings(process=(it,)), table, lambda: {"it": deaf}, Lives(spawner, log.parent)
    )
    wish, event = wished("stop-process", process="it")
    began = time.monotonic()
    result = await executor.execute(wish, StopParams(process="it"), event)
    assert time.monotonic() - began >= 0.2
    assert result.data == {"ended": [deaf.pid]}
    assert not is_alive(deaf)
