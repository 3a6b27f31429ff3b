"""The executors against real processes."""

import asyncio
import gc
import grp
import os
import pwd
import re
import resource
import signal
import sys
import threading
import uuid
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from pulse_adapters.host import run_command
from pulse_adapters.host.command_prober import LocalCommandProber
from pulse_adapters.host.health_prober import LocalHealthProber
from pulse_adapters.host.lives import Lives
from pulse_adapters.host.process_executors import RestartProcess, StopProcess
from pulse_adapters.host.process_table import LinuxProcessTable
from pulse_adapters.host.run_command import RunCommand
from pulse_adapters.host.settings_doubts import doubts_of
from pulse_adapters.host.spawner import CommandTimedOut, Spawner
from pulse_adapters.network.prober import ChildProber
from pulse_adapters.workers import process_tree
from pulse_adapters.workers.proc import ProcStat, command_line, has_marker, is_alive, live_processes
from pulse_core.actions import CommandParams, RestartParams, StopParams
from pulse_core.model.errors import PulseError, Refused
from pulse_core.ports.executor import GivenUp, NotYet, Result, Safety, Slot
from pulse_core.ports.health import HealthAnswer
from pulse_core.ports.host import ProcessId
from pulse_core.settings.processes import ProcessSettings
from pulse_core.settings.settings import Settings
from tests.dead_mount import dead
from tests.descriptors import no_descriptors
from tests.engine_user import ROOT_ALONE
from tests.integration.host.host_scene import EVENT_ID, script, until, wished

Known = dict[str, ProcessId]


def settings(**process: object) -> Settings:
    return Settings.model_validate({"process": [{"name": "it", **process}]})


@pytest.fixture
def known() -> Known:
    return {}


@pytest.fixture
def restarter(
    table: LinuxProcessTable, spawner: Spawner, known: Known, tmp_path: Path
) -> Callable[[Settings], RestartProcess]:
    return lambda chosen: RestartProcess(
        lambda: chosen, table, lambda: known, Lives(spawner, tmp_path), tmp_path / "logs"
    )


async def restart(executor: RestartProcess, **params: object) -> Result:
    effect, event = wished("restart-process", process="it", **params)
    return await executor.execute(effect, RestartParams.model_validate(effect.params), event)


def found_in(result: Result) -> ProcessId:
    return ProcessId(result.data["pid"], result.data["started"])


SLEEP = settings(start=["sleep", "1000"])


async def test_a_restart_takes_a_slot_of_starts_if_nothing_lives_and_none_if_something_has_to_end(
    restarter: Callable[[Settings], RestartProcess], known: Known
) -> None:
    executor, params = restarter(SLEEP), RestartParams(process="it")
    assert executor.policy(params).slot is Slot.START
    known["it"] = found_in(await restart(executor))
    assert executor.policy(params).slot is Slot.NONE
    os.kill(known["it"].pid, signal.SIGKILL)
    await until(lambda: not is_alive(known["it"]))
    assert executor.policy(params).slot is Slot.START
    assert restarter(settings(command=["true"], match="x")).policy(params).slot is Slot.SHARED


async def test_the_slot_of_a_restart_is_known_where_nothing_can_be_opened_to_look_with(
    restarter: Callable[[Settings], RestartProcess], known: Known
) -> None:
    executor, params = restarter(SLEEP), RestartParams(process="it")
    known["it"] = found_in(await restart(executor))
    with no_descriptors(os.getpid()):
        assert executor.policy(params).slot is Slot.START


async def test_the_dead_one_is_replaced(
    restarter: Callable[[Settings], RestartProcess], known: Known, tmp_path: Path
) -> None:
    executor = restarter(
        settings(start=["sh", "-c", "echo $GREETING; exec sleep 1000"], env={"GREETING": "hi"})
    )
    new = found_in(await restart(executor, instead_of={"pid": 2**22 + 1, "started": 1}, if_dead=True))
    assert is_alive(new)
    await until(lambda: (tmp_path / "logs" / "it.log").read_text() == "hi\n")
    await until(lambda: has_marker(new.pid, EVENT_ID))  # none is seen in the midst of its exec


async def test_a_stop_looks_at_all_processes_of_the_machine_beside_the_loop(
    restarter: Callable[[Settings], RestartProcess], known: Known, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked = list[int]()

    def noted() -> list[ProcStat]:
        looked.append(threading.get_ident())
        return live_processes()

    known["it"] = found_in(await restart(restarter(SLEEP)))
    monkeypatch.setattr(process_tree, "live_processes", noted)
    assert await restart(restarter(SLEEP))
    assert looked
    assert threading.get_ident() not in looked


@pytest.mark.parametrize("how", [{"start": ["sleep", "1000"]}, {"command": ["true"], "match": "sleep 1000"}])
async def test_whom_a_restart_ends_is_known_to_be_ended_by_pulse(
    restarter: Callable[[Settings], RestartProcess],
    known: Known,
    table: LinuxProcessTable,
    how: dict[str, Any],
) -> None:
    first = known["it"] = found_in(await restart(restarter(SLEEP)))
    assert not table.has_ended(first)
    await restart(restarter(settings(**how)))
    assert table.has_ended(first)


@pytest.mark.parametrize(("how", "is_killed"), [("exit", False), ("true", True)], ids=["ends", "goes on"])
async def test_whom_a_restart_kills_is_known_to_be_killed_by_pulse(
    restarter: Callable[[Settings], RestartProcess],
    known: Known,
    table: LinuxProcessTable,
    tmp_path: Path,
    how: str,
    is_killed: bool,
) -> None:
    code = f"trap {how} TERM; touch {tmp_path}/ready; while :; do sleep 0.02; done"
    timeout = "100ms" if is_killed else "60s"
    it = settings(start=["sh", "-c", code], stop_timeout=timeout)
    first = known["it"] = found_in(await restart(restarter(it)))
    await until((tmp_path / "ready").exists)
    await restart(restarter(it))
    assert (table.has_ended(first), table.has_killed(first)) == (True, is_killed)


@ROOT_ALONE
@pytest.mark.parametrize("cwd", [None, "/"])
async def test_it_runs_as_its_user_with_that_users_groups_and_environment(
    restarter: Callable[[Settings], RestartProcess], known: Known, tmp_path: Path, cwd: str | None
) -> None:
    nobody = pwd.getpwnam("nobody")
    wanted = settings(start=["sh", "-c", "id; env; exec sleep 1000"], user="nobody", cwd=cwd)
    it = known["it"] = found_in(await restart(restarter(wanted)))
    log = tmp_path / "logs" / "it.log"
    await until(lambda: command_line(it.pid) == ["sleep", "1000"])
    uids = f"Uid:\t{nobody.pw_uid}\t{nobody.pw_uid}\t{nobody.pw_uid}\t{nobody.pw_uid}"
    status = Path(f"/proc/{it.pid}/status").read_text()
    assert uids in status
    assert f"Groups:\t{nobody.pw_gid}" in status
    words = log.read_text().splitlines()
    assert {f"HOME={nobody.pw_dir}", "USER=nobody", "LOGNAME=nobody", f"PULSE_EFFECT={EVENT_ID}"} <= set(
        words
    )
    assert os.getsid(it.pid) == it.pid
    again = found_in(await restart(restarter(wanted)))
    assert (is_alive(it), is_alive(again)) == (False, True)


@pytest.mark.parametrize(
    ("user", "words"), [("nobody", "only root's daemon can start it"), ("no-such-user", "there is no user")]
)
async def test_who_can_not_be_its_user_is_refused_and_told(
    restarter: Callable[[Settings], RestartProcess], monkeypatch: pytest.MonkeyPatch, user: str, words: str
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 12_345)
    wanted = settings(start=["sleep", "1000"], user=user)
    with pytest.raises(PulseError, match=words):
        await restart(restarter(wanted))
    assert words in (await doubts_of(wanted.process))["it"]


async def test_nothing_is_done_if_another_one_is_up_by_now(
    restarter: Callable[[Settings], RestartProcess], known: Known, spawner: Spawner, log: Path
) -> None:
    up = known["it"] = await spawner.start(["sleep", "1000"], output=log)
    for params in ({"instead_of": {"pid": up.pid, "started": up.started - 1}}, {"if_dead": True}):
        result = await restart(restarter(SLEEP), **params)
        assert result.data == {"already": True, "pid": up.pid, "started": up.started}


async def test_a_person_gets_a_living_one_restarted(
    restarter: Callable[[Settings], RestartProcess], known: Known, spawner: Spawner, log: Path
) -> None:
    old = known["it"] = await spawner.start(["sleep", "1000"], output=log)
    new = found_in(await restart(restarter(SLEEP)))
    assert (is_alive(old), is_alive(new)) == (False, True)


async def test_restarts_on_each_others_heels_leave_one_of_it(
    restarter: Callable[[Settings], RestartProcess],
) -> None:
    executor = restarter(SLEEP)
    begun = [found_in(await restart(executor)) for _ in range(4)]
    assert [is_alive(one) for one in begun] == [False, False, False, True]


async def test_a_deaf_one_is_ended_before_it_is_replaced(
    restarter: Callable[[Settings], RestartProcess], known: Known, spawner: Spawner, log: Path
) -> None:
    old = known["it"] = await spawner.start(["sleep", "1000"], output=log)
    executor = restarter(settings(start=["sleep", "1000"], tcp="127.0.0.1:1"))
    new = found_in(await restart(executor, instead_of={"pid": old.pid, "started": old.started}, if_dead=True))
    assert (is_alive(old), is_alive(new)) == (False, True)


async def test_a_deaf_one_that_is_called_well_before_its_restart_ends_it_is_let_be(
    table: LinuxProcessTable, known: Known, spawner: Spawner, log: Path, tmp_path: Path
) -> None:
    old = known["it"] = await spawner.start(["sleep", "1000"], output=log)
    deaf = {"instead_of": {"pid": old.pid, "started": old.started}, "if_dead": True}
    chosen = settings(start=["sleep", "1000"], http="http://127.0.0.1:1/")
    lives, is_up = Lives(spawner, tmp_path), True
    executor = RestartProcess(
        lambda: chosen, table, lambda: known, lives, tmp_path / "logs", lambda name: is_up
    )
    assert (await restart(executor, **deaf)).data == {"already": True, **old._asdict()}
    person = await restart(executor)
    assert (is_alive(old), is_alive(found_in(person))) == (False, True)
    new = known["it"] = found_in(person)
    is_up = False
    await restart(executor, instead_of={"pid": new.pid, "started": new.started}, if_dead=True)
    assert not is_alive(new)


async def test_what_does_not_even_end_by_sigkill_is_told_by_the_restart_that_goes_on_beside_it(
    table: LinuxProcessTable, known: Known, spawner: Spawner, log: Path, tmp_path: Path
) -> None:
    class Hanging(Lives):
        async def stop(self, *_values: object) -> None:
            """Nothing ends what hangs in the kernel."""

    old = known["it"] = await spawner.start(["sleep", "1000"], output=log)
    chosen, lives = settings(start=["sleep", "1000"]), Hanging(spawner, tmp_path)
    executor = RestartProcess(lambda: chosen, table, lambda: known, lives, tmp_path / "logs")
    result = await restart(executor)
    assert (is_alive(old), result.data["beside"]) == (True, [old.pid])


async def test_whose_stop_is_requested_while_a_restart_ends_it_is_not_started(
    table: LinuxProcessTable, known: Known, spawner: Spawner, log: Path, tmp_path: Path
) -> None:
    old = known["it"] = await spawner.start(["sleep", "1000"], output=log)
    chosen, lives = settings(start=["sleep", "1000"]), Lives(spawner, tmp_path)
    arguments = (lambda: chosen, table, lambda: known, lives, tmp_path / "logs")
    executor = RestartProcess(*arguments, stopped_by=lambda name: "ada")
    with pytest.raises(PulseError, match="not started: ada has requested a stop meanwhile"):
        await restart(executor)
    assert (is_alive(old), lives.last("it")) == (False, None)


@pytest.mark.parametrize("is_well", [True, False], ids=["serves", "does not serve"])
@pytest.mark.parametrize("is_unit", [False, True], ids=["its own", "a unit without a process"])
async def test_what_an_earlier_daemon_wished_to_restart_is_let_be_if_it_serves_by_now(
    monkeypatch: pytest.MonkeyPatch, mark: str, tmp_path: Path, is_well: bool, is_unit: bool
) -> None:
    calls = tmp_path / "calls"
    script(tmp_path / "bin/systemctl", f'#!/bin/sh\necho "$@" >> {calls}\necho ActiveState=active\n')
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")
    spawner = Spawner()
    how = {"systemd_unit": "it.service"} if is_unit else {"start": ["sleep", "1000"]}
    chosen = settings(**how, exec=["true" if is_well else "false"])
    deaf = None if is_unit else await spawner.start(["sleep", "1000"], output=tmp_path / "it.log")
    known = {"it": deaf} if deaf else {}
    async with AsyncExitStack() as stack:
        stack.callback(spawner.close)
        stack.callback((table := LinuxProcessTable(spawner)).close)
        stack.callback((child := ChildProber()).close)
        commands = LocalCommandProber(spawner, str(tmp_path))
        stack.push_async_callback(commands.close)
        stack.push_async_callback((health := LocalHealthProber(spawner, child, commands)).close)
        lives, place = Lives(spawner, tmp_path), tmp_path / "logs"
        executor = RestartProcess(
            lambda: chosen, table, lambda: known, lives, place, lambda name: False, health.ask
        )
        instead = {"instead_of": deaf._asdict()} if deaf else {}
        effect, event = wished("restart-process", process="it", if_dead=True, **instead)
        earlier = event._replace(mono=event.mono - 60_000_000)
        result = await executor.execute(effect, RestartParams.model_validate(effect.params), earlier)
    assert ("already" in result.data) is is_well
    assert not is_unit or ("restart it.service" in calls.read_text()) is not is_well
    assert deaf is None or is_alive(deaf) is is_well


async def test_a_restart_that_an_earlier_daemon_wished_for_does_not_probe_what_is_down(
    table: LinuxProcessTable, spawner: Spawner, tmp_path: Path
) -> None:
    """A probe of it may take minutes, and the start waits."""

    async def nobody_may_ask(process: ProcessSettings, found: ProcessId | None) -> HealthAnswer:
        raise AssertionError("what is down was probed")

    chosen = settings(start=["sleep", "1000"], exec=["true"])
    executor = RestartProcess(
        lambda: chosen, table, dict, Lives(spawner, tmp_path), tmp_path / "logs", probe=nobody_may_ask
    )
    effect, event = wished("restart-process", process="it", if_dead=True)
    earlier = event._replace(mono=event.mono - 60_000_000)
    result = await executor.execute(effect, RestartParams.model_validate(effect.params), earlier)
    assert is_alive(found_in(result))


async def test_a_restart_that_waited_looks_again(
    restarter: Callable[[Settings], RestartProcess], spawner: Spawner, log: Path
) -> None:
    word = f"w{uuid.uuid4().hex}"
    argv = [sys.executable, "-c", "import time; time.sleep(1000)", word]
    by_hand = await spawner.start(argv, output=log)
    await until(lambda: word in command_line(by_hand.pid))
    executor = restarter(settings(start=argv, match=word))
    effect, event = wished("restart-process", process="it", instead_of={"pid": 2**22 + 1, "started": 1})
    old = event._replace(mono=event.mono - 2_000_000)
    result = await executor.execute(effect, RestartParams.model_validate(effect.params), old)
    assert found_in(result) == by_hand
    assert result.data["already"] is True


async def test_an_interrupted_start_is_recognised(restarter: Callable[[Settings], RestartProcess]) -> None:
    executor = restarter(SLEEP)
    effect, event = wished("restart-process", process="it")
    params = RestartParams.model_validate(effect.params)
    assert await executor.verify(effect, params, event) is None
    new = await executor.execute(effect, params, event)
    await until(
        lambda: has_marker(found_in(new).pid, EVENT_ID)
    )  # it is being executed, and shows no mark at first
    verified = await executor.verify(effect, params, event)
    assert verified is not None
    assert found_in(verified) == found_in(new)


async def test_a_restart_command_is_run_and_its_failure_told(
    restarter: Callable[[Settings], RestartProcess], tmp_path: Path
) -> None:
    pid = tmp_path / "pid"
    command = f"sleep 1000 & echo $! > {pid}"
    worked = settings(command=["sh", "-c", command], pid_file=str(pid))
    effect, event = wished("restart-process", process="it")
    params = RestartParams.model_validate(effect.params)
    assert (await restarter(worked).execute(effect, params, event)).data["exit"] == 0
    verified = await restarter(worked).verify(effect, params, event)
    assert verified is not None
    assert verified.data["pid"] == int(pid.read_text())
    assert is_alive(found_in(verified))
    with pytest.raises(GivenUp, match="'sh' ended with 3: no luck") as failed:
        await restart(restarter(settings(command=["sh", "-c", "echo no luck; exit 3"], pid_file="/x")))
    assert failed.value.result == {"exit": 3}, "it was run, and may bring the process up all the same"


async def test_a_unit_is_restarted_and_stopped_by_systemd(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mark: str
) -> None:
    calls = tmp_path / "calls"
    script(tmp_path / "bin" / "systemctl", f'#!/bin/sh\necho "$@" >> {calls}\n')
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    spawner = Spawner()
    table = LinuxProcessTable(spawner)
    chosen = settings(systemd_unit="it.service", systemd_user=True)
    await restart(
        RestartProcess(lambda: chosen, table, dict, Lives(spawner, tmp_path), tmp_path), if_dead=False
    )
    effect, event = wished("stop-process", process="it")
    await StopProcess(lambda: chosen, table, dict, Lives(spawner, tmp_path)).execute(
        effect, StopParams(process="it"), event
    )
    spawner.close()
    assert calls.read_text().splitlines()[-2:] == ["--user restart it.service", "--user stop it.service"]


async def test_an_unknown_process_is_refused_with_the_nearest_name(spawner: Spawner) -> None:
    chosen = Settings.model_validate({"process": [{"name": "gateway", "start": ["x"]}]})
    executor = StopProcess(lambda: chosen, None, dict, Lives(spawner, Path()))  # type: ignore[arg-type]  # not asked by check
    with pytest.raises(Refused, match="did you mean 'gateway'"):
        executor.check(StopParams(process="gatway"))


async def test_a_stop_ends_the_known_one_alone_and_may_be_repeated(
    table: LinuxProcessTable, spawner: Spawner, log: Path, tmp_path: Path
) -> None:
    word = f"w{uuid.uuid4().hex}"
    argv = [sys.executable, "-c", "import time; time.sleep(1000)", word]
    it, *others = [await spawner.start(argv, output=log) for _ in range(3)]
    await until(lambda: all(word in command_line(one.pid) for one in (it, *others)))
    chosen = settings(start=argv, match=word)
    executor = StopProcess(lambda: chosen, table, lambda: {"it": it}, Lives(spawner, tmp_path))
    effect, event = wished("stop-process", process="it")
    first = await executor.execute(effect, StopParams(process="it"), event)
    assert first.data["ended"] == [it.pid]
    with pytest.raises(PulseError, match="nothing was ended: 2 processes match"):
        await executor.execute(effect, StopParams(process="it"), event)
    assert all(is_alive(one) for one in others)


@pytest.mark.parametrize("if_dead", [False, True])
async def test_who_may_be_it_is_neither_ended_nor_held_for_a_restart(
    restarter: Callable[[Settings], RestartProcess], spawner: Spawner, log: Path, if_dead: bool
) -> None:
    word = f"w{uuid.uuid4().hex}"
    argv = [sys.executable, "-c", "import time; time.sleep(1000)", word]
    found = [await spawner.start(argv, output=log) for _ in range(2)]
    await until(lambda: all(word in command_line(one.pid) for one in found))
    executor = restarter(settings(start=argv, match=word))
    if if_dead:
        assert (await restart(executor, if_dead=True)).data == {"already": True}
    else:
        with pytest.raises(PulseError, match=r"nothing was started: 2 processes match"):
            await restart(executor)
    beside = restarter(settings(start=["sleep", "1000"], match=word))  # to which they are strangers
    assert found_in(await restart(beside, if_dead=if_dead)) not in found
    assert all(is_alive(one) for one in found)


async def test_a_stop_ends_nobody_who_start_would_not_produce(
    table: LinuxProcessTable, spawner: Spawner, log: Path, tmp_path: Path
) -> None:
    word = f"w{uuid.uuid4().hex}"
    stranger = await spawner.start([sys.executable, "-c", "import time; time.sleep(1000)", word], output=log)
    await until(lambda: word in command_line(stranger.pid))
    chosen = settings(start=["sleep", "1000"], match=word)
    executor = StopProcess(lambda: chosen, table, dict, Lives(spawner, tmp_path))
    effect, event = wished("stop-process", process="it")
    with pytest.raises(PulseError, match=r"nothing was ended: .* would not produce it"):
        await executor.execute(effect, StopParams(process="it"), event)
    assert is_alive(stranger)


async def test_a_helper_of_an_interrupted_start_is_not_taken_for_it(
    restarter: Callable[[Settings], RestartProcess],
) -> None:
    executor = restarter(settings(start=["sh", "-c", "setsid sleep 1000 & while :; do sleep 0.05; done"]))
    effect, event = wished("restart-process", process="it")
    params = RestartParams.model_validate(effect.params)
    new = found_in(await executor.execute(effect, params, event))
    await until(lambda: sum(has_marker(one.pid, EVENT_ID) for one in live_processes()) > 1)
    os.kill(new.pid, 9)
    await until(lambda: not is_alive(new))
    assert await executor.verify(effect, params, event) is None


@pytest.fixture
def runner(spawner: Spawner) -> Callable[..., RunCommand]:
    def made(*allow: str) -> RunCommand:
        chosen = Settings.model_validate({"executors": {"run-command": {"allow": allow}}})
        return RunCommand(lambda: chosen, spawner)

    return made


def command(*argv: str, **more: object) -> CommandParams:
    return CommandParams.model_validate({"argv": argv, **more})


def test_nothing_may_be_run_until_it_is_allowed(runner: Callable[..., RunCommand]) -> None:
    real = os.path.realpath("/bin/true")
    with pytest.raises(Refused, match=f'add "{real}" to `allow` under .executors.run-command.'):
        runner().check(command("true"))


def test_programs_are_compared_by_real_path(runner: Callable[..., RunCommand], tmp_path: Path) -> None:
    (tmp_path / "good").symlink_to("/bin/true")
    (tmp_path / "true").symlink_to("/bin/sh")
    runner(os.path.realpath("/bin/true")).check(command("true"))
    runner("/bin/true").check(command(os.path.realpath("/bin/true")))
    runner(str(tmp_path / "good")).check(command(os.path.realpath("/bin/true")))
    with pytest.raises(Refused):
        runner("/bin/true").check(command(str(tmp_path / "true")))


@pytest.mark.parametrize("name", ["./true", "bin/true", "../bin/true"])
def test_a_relative_path_is_refused(runner: Callable[..., RunCommand], name: str) -> None:
    with pytest.raises(Refused, match="relative path"):
        runner("/bin/true").check(command(name))


def test_a_missing_program_in_the_list_allows_nothing(runner: Callable[..., RunCommand]) -> None:
    with pytest.raises(Refused, match="there is no program"):
        runner("/no-such-program-here").check(command("no-such-program-here"))


@pytest.mark.parametrize("name", ["/bin" + "/../bin" * 500 + "/true", "/" + "x" * 100_000, "/bin/./true"])
def test_a_path_that_a_rule_made_up_is_not_followed(
    runner: Callable[..., RunCommand], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The effects of rules are checked in the event loop, and a path can be made to take long."""
    allowed = runner("/bin/true")
    allowed.check(command("/bin/true"))
    monkeypatch.setattr(os.path, "realpath", lambda _: pytest.fail("looked at the disk"))
    monkeypatch.setattr(os, "stat", lambda *_, **__: pytest.fail("looked at the disk"))
    with pytest.raises(Refused, match="may not be run"):
        allowed.check(command(name))


def test_a_link_that_is_turned_later_allows_nothing_new(
    runner: Callable[..., RunCommand], tmp_path: Path
) -> None:
    link = tmp_path / "allowed"
    link.symlink_to("/bin/true")
    pinned = runner(str(link))
    pinned.check(command(str(link)))
    link.unlink()
    link.symlink_to("/bin/false")
    assert pinned._allowed(str(link)) == os.path.realpath("/bin/true")


@pytest.mark.parametrize(
    "params", [{"argv": []}, {"argv": ["a\0b"]}, {"argv": ["a"], "cwd": "here"}, {"argv": ["a"], "x": 1}]
)
def test_broken_params_are_refused(params: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        CommandParams.model_validate(params)


async def test_what_is_allowed_on_a_file_system_that_does_not_answer_is_not_waited_for(
    runner: Callable[..., RunCommand], tmp_path: Path
) -> None:
    effect, event = wished("run-command")
    (place := tmp_path / "dead").mkdir()
    with dead(place) as fail:
        executor = runner("/bin/echo", str(place / "tool"))
        with pytest.raises(PulseError, match=r"the file system of what is in `allow` .* does not answer"):
            executor.check(command("/bin/echo"))
        fail()  # which is an answer
        result = await executor.execute(effect, command("/bin/echo", "words"), event)
        assert result.data["output"] == "words\n"


async def test_a_path_on_a_file_system_that_does_not_answer_is_not_waited_for(
    runner: Callable[..., RunCommand], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    effect, event = wished("run-command")
    (place := tmp_path / "dead").mkdir()
    with dead(place) as fail:
        monkeypatch.setenv("PATH", f"{place}:{os.environ['PATH']}")
        executor = runner("/bin/echo")
        executor.check(command("/bin/echo"))
        with pytest.raises(PulseError, match="the file system of PATH, for 'echo', does not answer"):
            executor.check(command("echo"))
        executor.check(command("/bin/echo"))
        monkeypatch.setattr(run_command, "MOST_ASKED", 4)
        for number in range(4):
            with pytest.raises(PulseError, match="does not answer"):
                executor.check(command(f"echo{number}"))
        assert len(executor._asked) == 4
        fail()  # which is an answer
        result = await executor.execute(effect, command("echo", "words"), event)
        assert result.data["output"] == "words\n"


def test_what_is_allowed_is_asked_again_where_nothing_could_be_asked_with(
    runner: Callable[..., RunCommand], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (place := tmp_path / "dead").mkdir()
    with dead(place) as fail:
        fail()
        executor = runner("/bin/echo")
        with no_descriptors(os.getpid()):
            executor.check(command("/bin/echo"))
        executor = runner("/bin/echo")
        with monkeypatch.context() as short:
            short.setattr(threading.Thread, "start", no_thread)
            with pytest.raises(
                PulseError, match=r"what is in `allow` .* can't be looked up: no more threads"
            ):
                executor.check(command("/bin/echo"))
        executor.check(command("/bin/echo"))


async def test_that_nobody_could_say_what_is_allowed_is_told_once_and_without_a_traceback(
    runner: Callable[..., RunCommand], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, told = threading.Event(), list[object]()

    def fails(*_: object) -> None:
        asked.wait(60)
        raise TimeoutError("it does not answer")

    monkeypatch.setattr(run_command, "ask_after_child", fails)
    asyncio.get_running_loop().set_exception_handler(lambda _, context: told.append(context))
    executor, (effect, event) = runner("/bin/echo"), wished("run-command")
    monkeypatch.setattr(executor, "_has_others", lambda: True)
    asyncio.get_running_loop().call_later(0.5, asked.set)
    with pytest.raises(PulseError, match="does not answer"):
        await executor.execute(effect, command("/bin/echo"), event)
    executor._asked.clear()  # as at the next question
    gc.collect()
    assert not told


def no_thread(_: threading.Thread) -> None:
    raise RuntimeError("can't start new thread")


async def test_an_allowed_program_runs_without_a_shell(runner: Callable[..., RunCommand]) -> None:
    effect, event = wished("run-command")
    params = command("echo", "$HOME; true", "`id`")
    result = await runner("/bin/echo").execute(effect, params, event)
    assert result.data == {"exit": 0, "output": "$HOME; true `id`\n"}


async def test_what_is_no_longer_allowed_is_refused_when_it_would_run(
    runner: Callable[..., RunCommand],
) -> None:
    effect, event = wished("run-command")
    with pytest.raises(Refused):
        await runner().execute(effect, command("true"), event)


async def test_a_failing_command_tells_exit_and_last_words(runner: Callable[..., RunCommand]) -> None:
    effect, event = wished("run-command")
    with pytest.raises(PulseError, match="'sh' ended with exit 5: so sad"):
        await runner("/bin/sh").execute(effect, command("sh", "-c", "echo so sad; exit 5"), event)
    with pytest.raises(PulseError, match="was ended by signal 9"):
        await runner("/bin/sh").execute(effect, command("sh", "-c", "kill -9 $$"), event)


async def test_a_command_that_overruns_is_ended_whole(runner: Callable[..., RunCommand]) -> None:
    effect, event = wished("run-command")
    params = command("sh", "-c", "setsid sleep 1000 & sleep 1000", timeout_s=0.3)
    with pytest.raises(CommandTimedOut):
        await runner("/bin/sh").execute(effect, params, event)
    assert not [one for one in live_processes() if has_marker(one.pid, EVENT_ID)]


def test_a_command_is_repeated_only_on_its_authors_word(runner: Callable[..., RunCommand]) -> None:
    executor = runner()
    once, again = executor.policy(command("true")), executor.policy(command("true", idempotent=True))
    assert (once.safety, once.retries) == (Safety.AT_MOST_ONCE, 0)
    assert (again.safety, again.retries) == (Safety.IDEMPOTENT, 2)
    assert executor.policy(command("true", timeout_s=1)).timeout < once.timeout


async def test_a_process_is_asked_to_end_by_its_signal_and_killed_after_its_time(
    table: LinuxProcessTable, spawner: Spawner, known: Known, tmp_path: Path
) -> None:
    said, ready = tmp_path / "said", tmp_path / "ready"
    code = f"trap 'echo INT >> {said}' INT; trap 'echo TERM >> {said}' TERM; touch {ready}; while :; do sleep 0.02; done"
    chosen = settings(start=["bash", "-c", code], stop_signal="INT", stop_timeout="200ms")
    lives = Lives(spawner, tmp_path)
    known["it"] = found_in(
        await restart(RestartProcess(lambda: chosen, table, lambda: known, lives, tmp_path / "logs"))
    )
    await until(ready.exists)
    executor = StopProcess(lambda: chosen, table, lambda: known, lives)
    effect, event = wished("stop-process", process="it")
    await executor.execute(effect, StopParams(process="it"), event)
    assert not is_alive(known["it"])
    assert said.read_text() == "INT\n"


async def test_a_stop_and_a_restart_have_the_time_that_the_process_has_to_end(
    restarter: Callable[[Settings], RestartProcess],
    table: LinuxProcessTable,
    spawner: Spawner,
    tmp_path: Path,
) -> None:
    chosen = settings(start=["sleep", "1000"], stop_timeout="5m")
    stopper = StopProcess(lambda: chosen, table, dict, Lives(spawner, tmp_path))
    assert stopper.policy(StopParams(process="it")).timeout > 300
    assert restarter(chosen).policy(RestartParams(process="it")).timeout > 300


async def test_a_process_has_the_umask_priority_and_limits_that_are_set(
    restarter: Callable[[Settings], RestartProcess], tmp_path: Path
) -> None:
    limits = {"nofile": 128, "core": "0", "as": "64M", "fsize": "1G", "nproc": 4_000}
    lower = min(os.getpriority(os.PRIO_PROCESS, 0) + 3, 19)
    start = ["sh", "-c", "umask; exec sleep 1000"]
    chosen = settings(start=start, umask="027", nice=lower, limits=limits, cwd="/")
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    it = found_in(await restart(restarter(chosen)))
    await until(lambda: (tmp_path / "logs" / "it.log").read_text() == "0027\n")
    assert resource.prlimit(it.pid, resource.RLIMIT_NOFILE) == (128, 128)
    assert resource.prlimit(it.pid, resource.RLIMIT_CORE) == (0, 0)
    assert resource.prlimit(it.pid, resource.RLIMIT_AS) == (64 << 20, 64 << 20)
    assert resource.prlimit(it.pid, resource.RLIMIT_FSIZE) == (1 << 30, 1 << 30)
    assert resource.prlimit(it.pid, resource.RLIMIT_NPROC) == (4_000, 4_000)
    assert os.getpriority(os.PRIO_PROCESS, it.pid) == lower
    assert os.readlink(f"/proc/{it.pid}/cwd") == "/"
    assert resource.getrlimit(resource.RLIMIT_NOFILE) == before


@ROOT_ALONE
async def test_what_only_root_can_give_a_process_of_another_user_has(
    restarter: Callable[[Settings], RestartProcess],
) -> None:
    chosen = settings(start=["sleep", "1000"], user="nobody", group="daemon", nice=-3, limits={"cpu": 9})
    it = found_in(await restart(restarter(chosen)))
    await until(
        lambda: command_line(it.pid) == ["sleep", "1000"]
    )  # until it is executed it may still be root's
    status, gid = Path(f"/proc/{it.pid}/status").read_text(), grp.getgrnam("daemon").gr_gid
    uid = pwd.getpwnam("nobody").pw_uid
    assert f"Uid:\t{uid}\t{uid}\t{uid}\t{uid}" in status
    assert f"Gid:\t{gid}\t{gid}\t{gid}\t{gid}" in status
    assert os.getpriority(os.PRIO_PROCESS, it.pid) == -3
    limits = Path(f"/proc/{it.pid}/limits").read_text()
    assert ["Max", "cpu", "time", "9", "9", "seconds"] in [line.split() for line in limits.splitlines()]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"group": "no-such-group"}, "there is no group 'no-such-group'"),
        ({"group": "daemon"}, "only root's daemon can start it as group 'daemon'"),
        ({"nice": -20}, "only root's daemon can start it with nice = -20"),
        (
            {"limits": {"core": "unlimited"}},
            "only root's daemon can give it core = unlimited, its own is 4096",
        ),
        ({"limits": {"nofile": 10**12}}, r"limits.nofile is 1000000000000, and the kernel allows \d+"),
    ],
)
async def test_what_the_daemon_can_not_give_is_refused_and_told(
    restarter: Callable[[Settings], RestartProcess],
    monkeypatch: pytest.MonkeyPatch,
    given: dict[str, object],
    words: str,
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 12_345)
    monkeypatch.setattr(resource, "getrlimit", lambda _: (4096, 4096))
    wanted = settings(start=["sleep", "1000"], **given)
    with pytest.raises(PulseError, match=words):
        await restart(restarter(wanted))
    assert re.search(words, (await doubts_of(wanted.process))["it"])


async def test_whose_dependency_is_dead_though_nobody_has_told_so_is_not_restarted_yet(
    restarter: Callable[[Settings], RestartProcess], known: Known
) -> None:
    others = [{"name": name, "start": ["sleep", "1000"]} for name in ("it", "store", "never-seen")]
    wanted = [*others, {"name": "unit", "systemd_unit": "of-no-main-process.service"}]
    executor = restarter(Settings.model_validate({"process": wanted}))
    params = RestartParams(process="it", needs=("store", "never-seen", "unit", "removed"))
    store = found_in(await restart(executor))
    known.update(dict.fromkeys(("store", "unit", "removed"), store))
    executor.check(params)
    os.kill(store.pid, signal.SIGKILL)
    await until(lambda: not is_alive(store))
    # A unit may be up without a main process, and nobody tells of the death of what is guarded no more.
    with pytest.raises(NotYet, match="it waits for store, on which it depends"):
        executor.check(params)
    with no_descriptors(os.getpid()):
        executor.check(params)  # nobody can look: what is recorded stands
