"""Looking for real processes and holding on to them."""

import asyncio
import errno
import os
import shlex
import socket
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from pulse_adapters.host import process_table
from pulse_adapters.host.listening_ports import UNSEEN, numeric_addresses, owners_at
from pulse_adapters.host.lives import Lives
from pulse_adapters.host.process_executors import RestartProcess, StopProcess
from pulse_adapters.host.process_identity import choose, doubtful_matches, words_of_others
from pulse_adapters.host.process_table import LinuxProcessTable
from pulse_adapters.host.settings_doubts import doubts_of
from pulse_adapters.host.spawner import Spawner
from pulse_adapters.sqlite.events import new_id
from pulse_adapters.workers import process_memory
from pulse_adapters.workers.proc import (
    TICKS_PER_SECOND,
    command_line,
    has_marker,
    is_alive,
    live_processes,
    own_line,
    read_stat,
    start_time_of,
)
from pulse_core.actions import RestartParams, StopParams
from pulse_core.model.errors import PulseError
from pulse_core.model.names import INDISTINCT
from pulse_core.ports.host import Life, ProcessId, ProcessObservation
from pulse_core.projections.processes import UNKNOWN_HISTORY
from pulse_core.settings.groups import PATTERN_CHECK
from pulse_core.settings.processes import ProcessSettings
from pulse_core.settings.settings import Settings
from pulse_core.watch.evaluate_process import believed
from tests.integration.host.host_scene import bury, child, said, script, until, wished


def by(**way: object) -> ProcessSettings:
    return ProcessSettings.model_validate(
        {"name": "it", **({} if "systemd_unit" in way else {"start": ["x"]}), **way}
    )


async def seen(
    table: LinuxProcessTable, process: ProcessSettings, known: ProcessId | None = None
) -> ProcessObservation:
    return (await table.look([process], {"it": known} if known else {}))["it"]


def sleeper(word: str) -> list[str]:
    return [sys.executable, "-c", "import time; time.sleep(1000)", word]


async def test_a_kill_is_told_once(table: LinuxProcessTable, spawner: Spawner, log: Path) -> None:
    dead: list[ProcessId] = []
    found = await spawner.start(["sleep", "1000"], output=log)
    table.hold([found], dead.append)
    os.kill(found.pid, 9)
    await until(lambda: dead)
    table.hold([found], dead.append)
    await asyncio.sleep(0.02)
    assert dead == [found]
    assert not (await seen(table, by(), found)).found


def pidfds_of(*found: ProcessId) -> int:
    """How many this process has of these; its threads open and close other descriptors at any moment."""
    wanted, number = {f"Pid:\t{one.pid}" for one in found}, 0
    for information in Path("/proc/self/fdinfo").iterdir():
        with suppress(FileNotFoundError):
            number += not wanted.isdisjoint(information.read_text().splitlines())
    return number


async def test_a_child_that_is_held_takes_no_descriptor_more(
    table: LinuxProcessTable, spawner: Spawner, log: Path
) -> None:
    """Of a limit of 1,024 twenty processes take twenty, and not forty: the others are for starts."""
    dead: list[ProcessId] = []
    children = [await spawner.start(["sleep", "1000"], output=log) for _ in range(4)]
    table.hold(children, dead.append)
    assert pidfds_of(*children) == len(children)
    os.kill(children[0].pid, 9)
    await until(lambda: dead)
    assert dead == children[:1]


async def test_who_the_loop_cannot_watch_is_held_at_the_next_look(
    table: LinuxProcessTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    dead: list[ProcessId] = []
    other = subprocess.Popen(["sleep", "1000"])
    try:
        stat = read_stat(other.pid)
        assert stat
        found = ProcessId(other.pid, stat.started)
        with monkeypatch.context() as here:
            here.setattr(asyncio.get_running_loop(), "add_reader", full)
            table.hold([found], dead.append)
        assert not pidfds_of(found)
        table.hold([found], dead.append)
    finally:
        other.kill()
    await until(lambda: dead == [found])
    other.wait(timeout=60)


async def test_who_was_dead_before_is_told_soon(table: LinuxProcessTable) -> None:
    dead: list[ProcessId] = []
    reused = ProcessId(os.getpid(), 1)
    table.hold([ProcessId(2**22 + 1, 5), reused], dead.append)
    assert dead == []
    await until(lambda: len(dead) == 2)


async def test_who_is_let_go_is_not_told(table: LinuxProcessTable, spawner: Spawner, log: Path) -> None:
    dead: list[ProcessId] = []
    one, other = [await spawner.start(["sleep", "1000"], output=log) for _ in range(2)]
    table.hold([one, other], dead.append)
    table.hold([other], dead.append)
    os.kill(one.pid, 9)
    os.kill(other.pid, 9)
    await until(lambda: dead)
    assert dead == [other]


async def test_a_zombie_is_not_there(table: LinuxProcessTable) -> None:
    pid = child("/bin/true")
    await until(lambda: (seen := read_stat(pid)) and seen.state == "Z")
    zombie = read_stat(pid)
    assert zombie is not None
    assert not (await seen(table, by(), zombie.found)).found
    assert start_time_of(pid) is None
    bury(pid)


async def test_a_held_child_that_nobody_waits_for_is_reaped(table: LinuxProcessTable) -> None:
    dead: list[ProcessId] = []
    pid = child("/bin/sleep", "1000")
    born = read_stat(pid)
    assert born is not None
    table.hold([born.found], dead.append)
    os.kill(pid, 9)
    await until(lambda: dead)
    assert read_stat(pid) is None


async def test_without_a_way_only_the_known_one_counts(
    table: LinuxProcessTable, spawner: Spawner, log: Path
) -> None:
    found = await spawner.start(["sleep", "1000"], output=log)
    assert (await seen(table, by())).found == ()
    assert (await seen(table, by(), found)).found == (found,)
    assert (await seen(table, by(), ProcessId(found.pid, found.started + 1))).found == ()


async def test_every_match_counts_oldest_first_until_the_last_is_gone(
    table: LinuxProcessTable, spawner: Spawner, log: Path
) -> None:
    word = f"w{uuid.uuid4().hex}"
    process = by(match=f"time\\.sleep.* {word}$", start=sleeper(word))
    found = []
    for _ in range(2):
        found.append(await spawner.start(sleeper(word), output=log))
        await asyncio.sleep(0.02)  # start times are told in hundredths
    await until(lambda: all(word in command_line(one.pid) for one in found))
    both = await seen(table, process)
    assert (both.found, both.doubt[:19]) == (tuple(found), "2 processes match: ")
    assert (await seen(table, process, found[1])).found == (found[1],)
    os.kill(found[0].pid, 9)
    await until(lambda: read_stat(found[0].pid) is None)
    assert (await seen(table, process, found[0])).found == (found[1],)
    os.kill(found[1].pid, 9)
    await until(lambda: read_stat(found[1].pid) is None)
    assert (await seen(table, process, found[1])).found == ()


async def test_a_known_process_that_became_another_program_is_still_it(
    table: LinuxProcessTable, spawner: Spawner, log: Path
) -> None:
    word = f"w{uuid.uuid4().hex}"
    found = await spawner.start(["sh", "-c", f": {word}; exec sleep 1000"], output=log)
    await until(lambda: said(Path(f"/proc/{found.pid}/comm")) == "sleep\n")
    sight = await seen(table, by(match=word), found)
    assert (sight.found, sight.known) == ((found,), True)


async def test_a_known_process_is_believed_while_it_is_still_being_executed(
    table: LinuxProcessTable, spawner: Spawner, log: Path
) -> None:
    word = f"w{uuid.uuid4().hex}"
    for _ in range(20):
        found = await spawner.start(sleeper(word), output=log)
        assert (await seen(table, by(match=word), found)).found == (found,)


async def test_many_that_match_are_told_apart_beside_the_loop(
    table: LinuxProcessTable, spawner: Spawner, log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Anybody may begin thousands, and each is looked at: deaths would wait for that."""
    threads, seconds = list[threading.Thread](), f"9{uuid.uuid4().int % 10**12:012}"
    monkeypatch.setattr(
        process_table, "choose", lambda *its: threads.append(threading.current_thread()) or choose(*its)
    )
    monkeypatch.setattr(
        process_table,
        "words_of_others",
        lambda *its: threads.append(threading.current_thread()) or words_of_others(*its),
    )
    process = by(match=f"sleep {seconds}", start=["sleep", seconds])
    found = [await spawner.start(["sleep", seconds], output=log) for _ in range(process_table.FEW + 1)]
    sight = await seen(table, process)
    assert sight.doubt.startswith(f"{len(found)} processes match: ")
    told = await table.others([process], {"it": found[0]})
    assert told["it"].startswith(f"{len(found) - 1} others match: ")
    assert len(threads) == 2
    assert threading.main_thread() not in threads


async def test_the_command_line_of_pulse_never_matches(
    table: LinuxProcessTable, spawner: Spawner, log: Path, tmp_path: Path
) -> None:
    word = f"w{uuid.uuid4().hex}"
    own = script(tmp_path / "upulse", "#!/bin/sh\necho ready; while :; do sleep 0.05; done\n")
    await spawner.start([str(own), "process", "list", word], output=log)
    await until(lambda: "ready" in said(log))
    assert (await seen(table, by(match=word))).found == ()


async def test_a_restart_command_is_not_taken_for_what_it_restarts(
    table: LinuxProcessTable, spawner: Spawner
) -> None:
    word = f"w{uuid.uuid4().hex}"
    task = asyncio.create_task(spawner.run(["sh", "-c", f": {word}; sleep 1000"], timeout=100))
    await until(lambda: spawner.running)
    assert (await seen(table, by(match=word))).found == ()
    task.cancel()
    await asyncio.wait([task])


async def test_a_pid_file_names_its_process(
    table: LinuxProcessTable, spawner: Spawner, log: Path, tmp_path: Path
) -> None:
    found, path = await spawner.start(["sleep", "1000"], output=log), tmp_path / "pid"
    path.write_text(f"{found.pid}\n")
    process = by(pid_file=str(path), start=["sleep", "1000"])
    await until(lambda: command_line(found.pid) == ["sleep", "1000"])
    assert (await seen(table, process)).found == (found,)
    assert (await seen(table, process, found)).found == (found,)
    await until(lambda: not table._files._open)  # what was asked before the change may answer after it
    path.chmod(0o666)
    sight = await seen(table, process)
    assert (sight.found, "not believed" in sight.detail) == ((), True)


@pytest.fixture
def patience(spawner: Spawner, monkeypatch: pytest.MonkeyPatch) -> float:
    """Seconds for which who reads of a process, or asks a file system, is waited for: on a busy machine a thread or a child
    may not have its turn for longer than a daemon waits, which then says that it could not look."""
    for name in ("MOST_S", "SLOW_S"):
        monkeypatch.setattr(process_memory, name, 60.0)
    spawner._files.patience_s = 60.0
    return 60.0


async def test_who_was_adopted_is_told_and_none_that_works_elsewhere_is(
    spawner: Spawner, log: Path, tmp_path: Path, patience: float
) -> None:
    word, table = f"w{uuid.uuid4().hex}", LinuxProcessTable(spawner, tmp_path)
    table._files.patience_s = patience
    there, marks = tmp_path / "there", {"PULSE_EFFECT": "e", "PULSE_PROCESS": f"it@{tmp_path}"}
    there.mkdir()
    it = await spawner.start(sleeper(word), output=log, cwd=str(there))
    await until(lambda: word in command_line(it.pid))
    process = by(match=word, start=sleeper(word), cwd=str(there))
    told = f"nothing shows that Pulse started process {it.pid}"
    sight = await seen(table, process)
    assert (sight.found, sight.detail) == ((it,), f"process {it.pid} matches; {told}")
    assert await table.others([process], {"it": it}) == {"it": told}
    elsewhere = await seen(table, by(match=word, start=sleeper(word), cwd=str(tmp_path)))
    assert (elsewhere.found, elsewhere.unlike) == ((), (it,))
    os.kill(it.pid, 9)
    await until(lambda: read_stat(it.pid) is None)
    own = await spawner.start(sleeper(word), output=log, env=marks)
    await until(lambda: word in command_line(own.pid) and has_marker(own.pid, "e"))
    sight = await seen(table, process)
    assert (sight.found, sight.detail) == ((own,), f"process {own.pid} matches")
    assert await table.others([process], {"it": own}) == {}


async def test_what_is_not_there_to_be_started_is_told(tmp_path: Path) -> None:
    missing = by(start=["/no/such/program"]), by(start=["true"], cwd=str(tmp_path / "none"))
    told = [(await doubts_of([one]))["it"] for one in missing]
    assert told == [
        "cannot start '/no/such/program': there is no such file; give the path of a program",
        f"cannot start 'true': its working directory '{tmp_path}/none' cannot be entered (No such file or directory)",
    ]
    assert await doubts_of([by(start=["true"], cwd=str(tmp_path))]) == {}


async def test_a_stranger_that_a_pid_file_names_is_told_and_not_taken_for_it(
    spawner: Spawner, log: Path, tmp_path: Path
) -> None:
    path, marks = tmp_path / "pid", {"PULSE_EFFECT": "e", "PULSE_PROCESS": f"it@{tmp_path}"}
    stranger = await spawner.start(["sleep", "1000"], output=log)
    own = await spawner.start(["sleep", "1000"], output=log, env=marks)
    process, table = by(start=["true"], pid_file=str(path)), LinuxProcessTable(spawner, tmp_path)
    await until(lambda: has_marker(own.pid, "e"))
    path.write_text(str(stranger.pid))
    sight = await seen(table, process)
    assert (sight.found, sight.unlike) == ((), (stranger,))
    told = {"it": f"process {stranger.pid} of {path} is no work of its `start`"}
    assert sight.detail == told["it"]
    assert await doubts_of([process]) == told
    assert believed(process, sight, UNKNOWN_HISTORY).doubt == told["it"]
    effect, event = wished("stop-process", process="it")
    stop = StopProcess(lambda: Settings(process=(process,)), table, dict, Lives(spawner, tmp_path))
    with pytest.raises(PulseError, match="nothing was ended"):
        await stop.execute(effect, StopParams(process="it"), event)
    path.write_text(str(own.pid))  # what a start has left
    assert (await seen(table, process)).found == (own,)
    assert await doubts_of([process]) == {}
    path.write_text(str(stranger.pid))  # who would know of a command?
    assert (await seen(table, by(pid_file=str(path), start=[], command=["x"]))).found == (stranger,)


async def test_a_pid_file_older_than_its_process_by_the_wall_clock_is_in_doubt_or_of_another(
    table: LinuxProcessTable, spawner: Spawner, log: Path, tmp_path: Path
) -> None:
    found, path = await spawner.start(["sleep", "1000"], output=log), tmp_path / "pid"
    path.write_text(str(found.pid))
    os.utime(path, (time.time() - 60, time.time() - 60))
    sight = await seen(table, by(pid_file=str(path)))  # whose `start` is another program
    assert sight.found == sight.unlike == ()
    assert f"process {found.pid} of {path} is no work of its `start`, and younger" in sight.detail
    commanded = by(pid_file=str(path), start=[], command=["x"])
    sight = await seen(table, commanded)
    assert sight.found == (found,)
    assert f"process {found.pid} is younger than {path} by the wall clock" in sight.doubt
    assert sight.doubt in (await doubts_of([commanded]))["it"]
    path.touch()
    sight = await seen(table, commanded)
    assert (sight.found, sight.doubt) == ((found,), "")


async def test_a_pid_file_that_names_a_thread_of_the_kernel_names_no_process(
    table: LinuxProcessTable, tmp_path: Path
) -> None:
    threads = [one for one in live_processes() if one.of_kernel]
    if not threads:
        pytest.skip("a container shows none")
    path = tmp_path / "pid"
    path.write_text(str(threads[0].pid))
    sight = await seen(table, by(pid_file=str(path), start=[], command=["x"]))
    assert (sight.found, sight.detail) == ((), f"process {threads[0].pid} of {path} is the kernel's")


async def test_a_pid_file_that_names_a_thread_names_no_process(
    table: LinuxProcessTable, tmp_path: Path
) -> None:
    path, done = tmp_path / "pid", threading.Event()
    thread = threading.Thread(target=done.wait, args=(60,))
    thread.start()
    path.write_text(str(thread.native_id))
    try:
        sight = await seen(table, by(pid_file=str(path), start=[], command=["x"]))
    finally:
        done.set()
        thread.join(60)
    words = f"{thread.native_id} of {path} is a thread of process {os.getpid()}"
    assert (sight.found, sight.detail) == ((), words)


async def test_a_pid_file_that_moved_on_leads_to_the_new_process_when_the_known_one_dies(
    table: LinuxProcessTable, spawner: Spawner, log: Path, tmp_path: Path
) -> None:
    old, new = [await spawner.start(["sleep", "1000"], output=log) for _ in range(2)]
    path = tmp_path / "pid"
    path.write_text(str(new.pid))
    process, dead = by(pid_file=str(path), start=["sleep", "1000"]), list[ProcessId]()
    await until(lambda: command_line(new.pid) == ["sleep", "1000"])
    sight = await seen(table, process, old)
    assert (sight.found, sight.known) == ((old,), True)
    table.hold([old], dead.append)
    os.kill(old.pid, 9)
    await until(lambda: dead)
    sight = await seen(table, process, old)
    assert (sight.found, sight.known, sight.ended) == ((new,), False, "was killed by SIGKILL")


async def test_a_pid_file_is_judged_by_the_boot_clock(
    table: LinuxProcessTable, spawner: Spawner, log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    it, path = await spawner.start(["sleep", "1000"], output=log), tmp_path / "pid"
    await until(lambda: command_line(it.pid) == ["sleep", "1000"])
    path.write_text(str(it.pid))
    os.utime(path, (1, 1))  # since then the clock was set
    assert (await seen(table, by(pid_file=str(path), start=["/bin/sleep", "1000"]))).found == (it,)
    assert (
        await seen(table, by(pid_file=str(path)))
    ).found == ()  # an old file, and `start` is another program
    path.write_text(str(it.pid))
    os.utime(path, (2, 2))  # that was seen to change
    assert (await seen(table, by(pid_file=str(path), start=["sleep", "1000"]))).found == (it,)
    monkeypatch.setattr("pulse_adapters.host.pid_files.ticks_now", lambda: it.started - 2)
    path.write_text(str(it.pid))  # its clock says that it is later than the process
    sight = await seen(table, by(pid_file=str(path)))
    assert "given to another process" in sight.detail


async def test_a_death_is_told_before_anybody_is_searched_for(
    table: LinuxProcessTable, spawner: Spawner, log: Path
) -> None:
    word, dead = f"w{uuid.uuid4().hex}", list[ProcessId]()
    it, other = [await spawner.start(sleeper(word), output=log) for _ in range(2)]
    await until(lambda: all(word in command_line(one.pid) for one in (it, other)))
    process = by(match=word, start=sleeper(word))
    table.hold([it], dead.append)
    os.kill(it.pid, 9)
    await until(lambda: dead)
    assert (await seen(table, process, it)).found == ()
    table.hold([], dead.append)
    assert (await seen(table, process, it)).found == (other,)


async def test_of_others_it_is_who_start_produces_and_not_who_came_out_of_it(
    table: LinuxProcessTable, spawner: Spawner, log: Path
) -> None:
    word = f"w{uuid.uuid4().hex}"
    forks = [sys.executable, "-c", "import os, time; os.fork(); os.fork(); time.sleep(1000)", word]
    it = await spawner.start(forks, output=log)
    await until(lambda: sum(word in command_line(one.pid) for one in live_processes()) == 4)
    assert (await seen(table, by(match=word, start=forks))).found == (it,)
    strange = await seen(table, by(match=word))
    assert (strange.found, strange.unlike, strange.doubt) == ((), (it,), "")
    assert strange.detail == f"process {it.pid} matches, but `start` would not produce it"
    other = await spawner.start(sleeper(word), output=log)
    await until(lambda: word in command_line(other.pid))
    sight = await seen(table, by(match=word, start=forks))
    assert (sight.found, sight.doubt) == ((it,), "")
    assert sight.detail == f"process {it.pid} matches"  # `others` tells who matches beside it now


async def test_the_words_of_start_within_one_argument_make_nobody_it_and_those_of_a_title_do(
    table: LinuxProcessTable, spawner: Spawner, log: Path
) -> None:
    word = f"w{uuid.uuid4().hex}"
    process, title = by(match=word, start=["serve", word]), f"serve: master /usr/bin/serve {word}"
    shell = await spawner.start(["sh", "-c", f"sleep 1000; : pkill -f serve {word} here"], output=log)
    await until(lambda: any(word in one for one in command_line(shell.pid)))
    sight = await seen(table, process)
    assert (sight.found, sight.unlike) == ((), (shell,))
    it = await spawner.start(["bash", "-c", f"exec -a '{title}' sleep 1000"], output=log)
    await until(lambda: command_line(it.pid)[:1] == [title])
    assert (await seen(table, process)).found == (it,)


async def test_who_matches_beside_the_known_one_is_told(
    table: LinuxProcessTable, spawner: Spawner, log: Path
) -> None:
    word = f"w{uuid.uuid4().hex}"
    forks = [sys.executable, "-c", "import os, time; os.fork(); time.sleep(1000)", word]
    it, other = await spawner.start(forks, output=log), await spawner.start(sleeper(word), output=log)
    await until(lambda: sum(word in command_line(one.pid) for one in live_processes()) == 3)
    process = by(match=word, start=forks)
    assert await table.others([process], {"it": it}) == {"it": f"1 other matches: {other.pid}"}
    told = await doubtful_matches([process, by(name="else", match=f"none {word}")])
    assert told == {"it": f"process {it.pid} matches; 1 other matches: {other.pid}"}
    os.kill(other.pid, 9)
    await until(lambda: read_stat(other.pid) is None)
    assert await table.others([process], {"it": it}) == await doubtful_matches([process]) == {}


@pytest.mark.parametrize("way", ["match", "pid_file", "tcp"])
async def test_nobody_of_another_user_and_nobody_of_the_engine_is_it(
    table: LinuxProcessTable, spawner: Spawner, log: Path, tmp_path: Path, way: str
) -> None:
    port, path = free_port(), tmp_path / "pid"
    argv = [sys.executable, "-c", SERVER, "127.0.0.1", str(port), str(int(socket.AF_INET))]
    for mark in ({"PULSE_HANDS": "x"}, {}):
        log.unlink(missing_ok=True)
        it = await spawner.start(argv, output=log, env=mark)
        await until(lambda: "ready" in said(log))
        path.write_text(str(it.pid))
        ways = {"match": f"127.0.0.1 {port}", "pid_file": str(path), "tcp": f"127.0.0.1:{port}"}
        sight = await seen(table, by(start=argv, **{way: ways[way]}))
        assert sight.found == (() if mark else (it,))
        if not mark:
            sight = await seen(table, by(start=argv, user="nobody", **{way: ways[way]}))
            assert (sight.found, sight.answering) == ((), False if way == "tcp" else None)
            assert f"process {it.pid} belongs to another user" in sight.detail
        os.kill(it.pid, 9)
        await until(lambda pid=it.pid: read_stat(pid) is None)  # type: ignore[misc]


@pytest.mark.parametrize("pid_of", [lambda: 1, os.getpid, os.getppid], ids=["first", "own", "parent"])
async def test_neither_pulse_nor_what_runs_it_is_ever_it(
    table: LinuxProcessTable, tmp_path: Path, pid_of: Callable[[], int]
) -> None:
    (tmp_path / "pid").write_text(f"{pid_of()}\n")
    sight = await seen(table, by(pid_file=str(tmp_path / "pid")))
    assert sight.found == ()
    assert pid_of() in own_line()


async def test_what_runs_pulse_is_not_ended(
    spawner: Spawner, log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = await spawner.start(["sleep", "1000"], output=log)
    # The real ones are not tried: if they were not refused, all of the machine would be ended.
    monkeypatch.setattr("pulse_adapters.host.spawner.own_line", lambda: {found.pid})
    with pytest.raises(PulseError, match="is Pulse or runs it"):
        await spawner.end(found, soft=0.0)
    assert is_alive(found)


@pytest.mark.parametrize("is_fork", [True, False], ids=["fork", "program"])
async def test_a_helper_is_not_taken_for_its_dead_main_process_by_the_next_daemon(
    spawner: Spawner, log: Path, tmp_path: Path, is_fork: bool
) -> None:
    fork = "import os, time; os.fork() or os.setsid(); time.sleep(1000)"
    argv = [sys.executable, "-c", fork] if is_fork else ["sh", "-c", "setsid sleep 1000 & sleep 1000; :"]
    marks = {"PULSE_EFFECT": str(uuid.uuid4()), "PULSE_PROCESS": f"it@{tmp_path}"}
    it = await spawner.start(argv, output=log, env=marks)
    await until(lambda: sum(has_marker(one.pid, marks["PULSE_EFFECT"]) for one in live_processes()) > 1)
    begun = {marks["PULSE_EFFECT"]: "it"}

    async def found(begun: dict[str, str], *known: ProcessId) -> tuple[ProcessId, ...]:
        lives = Lives(spawner, tmp_path, begun=lambda: begun)
        return (await seen(LinuxProcessTable(spawner, tmp_path, lives), by(start=argv), *known)).found

    assert await found(begun) == (it,)
    assert await found({}) == (it,)  # the log is gone
    assert await found(begun, ProcessId(it.pid, it.started - 1)) == (it,)
    assert await found({}, ProcessId(it.pid, it.started - 1)) == ()
    os.kill(it.pid, 9)
    await until(lambda: read_stat(it.pid) is None)
    assert await found(begun, it) == await found(begun) == ()


@pytest.mark.usefixtures("patience")
async def test_a_start_that_no_disk_took_is_known_by_its_marks_if_they_are_newer_than_the_last_that_it_took(
    spawner: Spawner, log: Path, tmp_path: Path
) -> None:
    argv = ["sh", "-c", "setsid sleep 1000 & sleep 1000; :"]
    older, recorded, newer = sorted(new_id() for _ in range(3))

    async def found(effect: str, name: str = "it") -> tuple[ProcessId, ...]:
        dead = await spawner.start(["true"], output=log)
        await until(lambda: not is_alive(dead))
        await asyncio.sleep(2 / TICKS_PER_SECOND)
        marks = {"PULSE_EFFECT": effect, "PULSE_PROCESS": f"{name}@{tmp_path}"}
        it = await spawner.start(argv, output=log, env=marks)
        await until(lambda: sum(has_marker(one.pid, effect) for one in live_processes()) > 1)
        life = Life(recorded, dead)
        lives = Lives(spawner, tmp_path, recorded=lambda: {"it": life}, mains=lambda: {"it": dead})
        sight = await seen(LinuxProcessTable(spawner, tmp_path, lives), by(start=argv), dead)
        assert set(sight.found) <= {it}
        assert lives.last("it") == (Life(effect, it) if sight.found else life)
        os.kill(it.pid, 9)
        await until(lambda: not is_alive(it))
        if sight.found:  # what it has left is of its life
            await lives.end("it", it)
            assert not any(has_marker(one.pid, effect) for one in live_processes())
        return sight.found

    assert await found(newer)
    assert not await found(older)  # somebody was given the environment of a life that is over
    assert not await found(new_id(), "other")


@pytest.mark.parametrize("text", ["", "garbage", "-1", "0", "99999999999999999999", "\x00\xff"])
async def test_a_pid_file_with_garbage_says_so(table: LinuxProcessTable, tmp_path: Path, text: str) -> None:
    path = tmp_path / "pid"
    path.write_text(text)
    sight = await seen(table, by(pid_file=str(path)))
    assert (sight.found, sight.detail) == ((), f"{path} holds no process id")


async def test_a_missing_pid_file_says_so(table: LinuxProcessTable, tmp_path: Path) -> None:
    assert "there is no" in (await seen(table, by(pid_file=str(tmp_path / "none")))).detail


SERVER = """
import signal, socket, sys, time
family = int(sys.argv[3])
server = socket.create_server((sys.argv[1], int(sys.argv[2])), family=family, dualstack_ipv6=sys.argv[1] == "::")
signal.signal(signal.SIGUSR1, lambda *_: server.close())
print("ready", flush=True)
while True: time.sleep(1000)
"""


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


@pytest.mark.parametrize(
    ("bound", "asked", "family"),
    [
        ("127.0.0.1", "127.0.0.1", socket.AF_INET),
        ("0.0.0.0", "localhost", socket.AF_INET),
        ("::1", "[::1]", socket.AF_INET6),
        ("::", "127.0.0.1", socket.AF_INET6),
    ],
)
async def test_a_port_leads_to_its_process_until_it_is_closed(
    table: LinuxProcessTable, spawner: Spawner, log: Path, bound: str, asked: str, family: int
) -> None:
    port = free_port()
    argv = [sys.executable, "-c", SERVER, bound, str(port), str(int(family))]
    process = by(tcp=f"{asked}:{port}", start=argv)
    nobody = await seen(table, process)
    assert (nobody.found, nobody.answering) == ((), False)
    found = await spawner.start(argv, output=log)
    await until(lambda: "ready" in said(log))
    sight = await seen(table, process)
    assert (sight.found, sight.answering) == ((found,), True)
    known = await seen(table, process, found)
    assert (known.found, known.answering) == ((found,), None)  # it is alive: its health is asked beside
    os.kill(found.pid, 10)  # SIGUSR1: it lives on, deaf
    deaf = await seen(table, process)
    deadline = time.monotonic() + 60
    while deaf.answering and time.monotonic() < deadline:
        deaf = await seen(table, process)
    assert (deaf.found, deaf.answering) == ((), False)


LOOK = """
import asyncio, sys
from pulse_adapters.host.process_table import LinuxProcessTable
from pulse_adapters.host.spawner import Spawner
from pulse_core.settings.processes import ProcessSettings
async def look():
    spawner = Spawner()
    table = LinuxProcessTable(spawner)
    process = ProcessSettings.model_validate({"name": "it", "start": ["x"], "tcp": sys.argv[1]})
    sight = (await table.look([process], {}))["it"]
    print(sight.found, sight.answering, sight.detail)
    table.close()
    spawner.close()
asyncio.run(look())
"""


@pytest.mark.skipif(os.getuid() != 0, reason="only root can make a PID namespace")
def test_who_answers_at_the_port_and_can_not_be_seen_is_told() -> None:
    """As who is in another container, or is another user's where Pulse is not root."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        inside = [
            "unshare",
            "--pid",
            "--fork",
            "--kill-child",
            "--mount-proc",
            sys.executable,
            "-c",
            LOOK,
            address,
        ]
        told = subprocess.run(inside, capture_output=True, text=True, timeout=60)
    assert told.stdout == f"() True {address} answers; {UNSEEN}\n", told.stderr


async def test_who_holds_the_port_and_is_not_what_start_produces_is_named_and_is_not_it(
    table: LinuxProcessTable, spawner: Spawner, log: Path
) -> None:
    port = free_port()
    argv = [sys.executable, "-c", SERVER, "127.0.0.1", str(port), str(int(socket.AF_INET))]
    stranger = await spawner.start(argv, output=log)
    await until(lambda: "ready" in said(log))
    sight = await seen(table, by(tcp=f"127.0.0.1:{port}"))
    assert (sight.found, sight.answering, sight.unlike) == ((), False, (stranger,))
    who = f"process {stranger.pid} ({os.path.basename(sys.executable)})"
    assert sight.detail == sight.holder == f"127.0.0.1:{port} is held by {who}"
    by_command = ProcessSettings(name="it", command=("true",), tcp=f"127.0.0.1:{port}")
    assert (await seen(table, by_command)).found == (stranger,)


SHARED = """
import socket, sys, time
with socket.socket() as server:
    server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    server.bind(("127.0.0.1", int(sys.argv[1])))
    server.listen()
    time.sleep(1000)
"""


async def test_of_several_that_hold_the_port_none_is_it_and_that_is_said(
    table: LinuxProcessTable, spawner: Spawner, log: Path
) -> None:
    port = free_port()
    argv = [sys.executable, "-c", SHARED, str(port)]
    both = [await spawner.start(argv, output=log) for _ in range(2)]
    process = by(tcp=f"127.0.0.1:{port}", start=argv)
    await until(lambda: len(owners_at(numeric_addresses(f"127.0.0.1:{port}"))[1]) == 2)
    sight = await seen(table, process)
    assert (set(sight.found), sight.answering) == (set(both), True)
    assert sight.doubt.endswith(f"; {INDISTINCT}")
    assert await doubts_of([process]) == {"it": sight.detail}


async def test_what_was_started_is_it_before_it_is_recorded_whatever_else_matches(
    spawner: Spawner, log: Path, tmp_path: Path
) -> None:
    word, lives = f"w{uuid.uuid4().hex}", Lives(spawner, tmp_path)
    old, new, *_ = [await spawner.start(sleeper(word), output=log) for _ in range(4)]
    lives.begin("it", Life("effect", new))
    table, process = LinuxProcessTable(spawner, lives=lives), by(match=word, start=sleeper(word))
    assert (await seen(table, process, old)).found == (old,)
    os.kill(old.pid, 9)
    await until(lambda: read_stat(old.pid) is None)
    for known in (old, None):
        sight = await seen(table, process, known)
        assert (sight.found, sight.known, sight.doubt) == ((new,), False, "")


async def test_what_a_start_left_in_the_background_without_its_environment_is_it_and_what_is_younger_is_not(
    spawner: Spawner, log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pulse_adapters.host.process_table._FORK_TICKS", 5)
    word, lives = f"w{uuid.uuid4().hex}", Lives(spawner, tmp_path)
    program = shlex.join(sleeper(word))
    start = ["sh", "-c", f"env -i setsid {program} & exit 0"]
    first = await spawner.start(start, output=log, env={"PULSE_EFFECT": word})
    lives.begin("it", Life(word, first))
    await until(lambda: read_stat(first.pid) is None)
    process, table = by(match=f"python.* {word}$", start=start), LinuxProcessTable(spawner, lives=lives)
    left: list[ProcessId] = []
    async with asyncio.timeout(60):
        while not left:
            left += (await seen(table, process)).found
    await asyncio.sleep(0.1)  # start times are told in hundredths
    younger = await spawner.start(sleeper(word), output=log)
    os.kill(left[0].pid, 9)
    await until(lambda: word in command_line(younger.pid) and not is_alive(left[0]))
    sight = await seen(table, process)
    assert (sight.found, sight.unlike) == ((), (younger,))


async def test_a_name_that_cannot_be_looked_up_does_not_answer(table: LinuxProcessTable) -> None:
    sight = await seen(table, by(tcp="no-such-host.invalid:80"))
    assert (sight.busy, sight.answering) == (False, False)
    assert "no-such-host.invalid" in sight.detail


async def test_a_port_whose_backlog_is_full_does_not_answer(
    table: LinuxProcessTable, spawner: Spawner
) -> None:
    with socket.create_server(("127.0.0.1", 0), backlog=0) as server:
        clients = [socket.socket() for _ in range(2)]
        for client in clients:
            client.setblocking(False)
            client.connect_ex(server.getsockname())
        sight = await seen(table, by(tcp=f"127.0.0.1:{server.getsockname()[1]}"))
        for client in clients:
            client.close()
    assert (sight.found, sight.answering) == ((), False)
    assert "is Pulse, or runs it" in sight.detail


FAKE = """#!/bin/sh
echo "$@" >> {calls}
cat {answer}
"""


@pytest.fixture
def systemctl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mark: str) -> Path:
    """A systemctl that says what stands in the returned file."""
    answer = tmp_path / "answer"
    script(tmp_path / "bin" / "systemctl", FAKE.format(calls=tmp_path / "calls", answer=answer))
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    return answer


def unit(active: str, sub: str, result: str = "success", pid: int = 0) -> str:
    return f"LoadState=loaded\nActiveState={active}\nSubState={sub}\nResult={result}\nMainPID={pid}\n"


async def asked(answer: Path, text: str, known: ProcessId | None = None) -> ProcessObservation:
    script(answer, text)
    spawner = Spawner()
    table = LinuxProcessTable(spawner)
    try:
        return await seen(table, by(systemd_unit="it.service"), known)
    finally:
        table.close()
        spawner.close()


async def test_a_unit_leads_to_its_main_process(systemctl: Path, spawner: Spawner, log: Path) -> None:
    found = await spawner.start(["sleep", "1000"], output=log)
    sight = await asked(systemctl, unit("active", "running", pid=found.pid))
    assert (sight.found, sight.detail) == ((found,), f"process {found.pid} is that of it.service")


async def test_a_unit_that_systemd_does_not_know_is_told(systemctl: Path) -> None:
    script(systemctl, unit("inactive", "dead").replace("loaded", "not-found"))
    told = await doubts_of([by(systemd_unit="it.service")])
    assert told == {"it": "systemd can't start it.service: unit is not-found"}
    script(systemctl, unit("inactive", "dead"))
    assert await doubts_of([by(systemd_unit="it.service")]) == {}
    words = "it.timer runs no program: it counts as up while systemd has it active, whatever it starts; name a .service"
    assert await doubts_of([by(systemd_unit="it.timer")]) == {"it": words}


async def test_a_known_main_process_needs_no_systemctl(systemctl: Path, spawner: Spawner, log: Path) -> None:
    found = await spawner.start(["sleep", "1000"], output=log)
    assert (await asked(systemctl, "", found)).found == (found,)
    assert not (systemctl.parent / "calls").exists()


@pytest.mark.parametrize(
    ("text", "intended", "busy"),
    [
        (unit("inactive", "dead"), True, False),
        (unit("failed", "failed", "signal"), False, False),
        (unit("activating", "auto-restart", "signal"), False, True),
        (unit("deactivating", "stop-sigterm"), False, True),
        (
            "LoadState=not-found\nActiveState=inactive\nSubState=dead\nResult=success\nMainPID=0\n",
            False,
            False,
        ),
    ],
)
async def test_a_units_state_tells_intent_and_work(
    systemctl: Path, text: str, intended: bool, busy: bool
) -> None:
    sight = await asked(systemctl, text)
    assert (sight.found, sight.intended, sight.busy) == ((), intended, busy)


ENDED = "ExecMainPID=5\nExecMainCode={code}\nExecMainStatus={status}\nRuntimeMaxUSec={most}\n"
MOMENTS = (
    "ExecMainStartTimestampMonotonic={}\nActiveExitTimestampMonotonic={}\nExecMainExitTimestampMonotonic={}\n"
)
STOPPED_UNIT, CRASHED = MOMENTS.format(1, 7, 9), MOMENTS.format(1, 9, 8)


@pytest.mark.parametrize(
    ("result", "code", "status", "more", "intended", "words"),
    [
        ("exit-code", 1, 143, STOPPED_UNIT, True, "exited with status 143"),
        ("exit-code", 1, 143, CRASHED, False, "exited with status 143"),
        ("signal", 2, 9, CRASHED, False, "was killed by SIGKILL"),
        ("timeout", 2, 9, STOPPED_UNIT, True, "was killed by SIGKILL (result timeout)"),
        ("watchdog", 3, 6, STOPPED_UNIT, False, "was killed by SIGABRT (result watchdog)"),
        (
            "oom-kill",
            2,
            15,
            STOPPED_UNIT,
            False,
            "was killed by SIGTERM (result oom-kill: out of memory, the kernel killed a process of it)",
        ),
        # It was up, left that, and its next start failed.
        ("exit-code", 1, 3, MOMENTS.format(7, 5, 9), False, "exited with status 3"),
        ("exit-code", 1, 3, MOMENTS.format(7, 0, 9), False, "exited with status 3"),
    ],
)
async def test_a_unit_that_was_told_to_stop_is_no_failure_whatever_its_process_ended_with(
    systemctl: Path, result: str, code: int, status: int, more: str, intended: bool, words: str
) -> None:
    end = ENDED.format(code=code, status=status, most="infinity")
    sight = await asked(systemctl, unit("failed", "failed", result) + end + more, ProcessId(5, 50))
    assert (sight.intended, sight.ended) == (intended, words)
    of_another = await asked(systemctl, unit("failed", "failed", result) + end + more, ProcessId(6, 50))
    assert of_another.ended == ""


async def test_a_unit_that_ends_with_one_to_which_it_is_bound_was_not_told_to_stop(systemctl: Path) -> None:
    end = ENDED.format(code=1, status=143, most="infinity") + STOPPED_UNIT + "BindsTo=db.service\n"
    assert not (await asked(systemctl, unit("failed", "failed", "exit-code") + end)).intended


async def test_of_a_unit_that_failed_it_is_told_how_its_process_ended(systemctl: Path) -> None:
    end = ENDED.format(code=1, status=203, most="infinity") + CRASHED
    sight = await asked(systemctl, unit("failed", "failed", "exit-code") + end)
    assert sight.detail == "unit is failed (failed), result exit-code: process 5 exited with status 203"


FORGOTTEN = "it was stopped, ended, or was not started; systemd does not tell which"
MET = "ConditionResult={}\nConditionTimestampMonotonic={}\nAssertResult={}\nAssertTimestampMonotonic={}\n"
EXITED = ENDED.format(code=1, status=0, most="infinity")


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (MET.format("no", 0, "no", 0), f"unit is inactive (dead), result success: {FORGOTTEN}"),
        (
            EXITED + STOPPED_UNIT + MET.format("yes", 1, "yes", 1),
            "unit was told to stop, and is inactive (dead), result success",
        ),
        (
            EXITED + STOPPED_UNIT + "BindsTo=db.service\n",
            "unit is inactive (dead), result success: process 5 exited with status 0",
        ),
        (
            EXITED + STOPPED_UNIT + MET.format("no", 10, "yes", 1),
            "unit is inactive (dead), result success: systemd did not start it, since a condition (Condition…=) was"
            " not met",
        ),
        (
            MET.format("yes", 10, "no", 10),
            "unit is inactive (dead), result success: systemd did not start it, since an assertion (Assert…=) was"
            " not met",
        ),
    ],
    ids=["forgotten", "stopped", "bound", "condition", "assertion"],
)
async def test_of_a_unit_that_is_inactive_no_more_is_told_than_systemd_knows(
    systemctl: Path, more: str, words: str
) -> None:
    sight = await asked(systemctl, unit("inactive", "dead") + more)
    assert (sight.intended, sight.detail) == (True, words)


async def test_who_ran_for_as_long_as_its_unit_allows_was_not_told_to_stop(systemctl: Path) -> None:
    end = ENDED.format(code=2, status=15, most="5s") + STOPPED_UNIT
    assert not (await asked(systemctl, unit("failed", "failed", "timeout") + end)).intended


@pytest.mark.parametrize(
    ("active", "restarts", "known", "intended"),
    [("active", 0, 4, True), ("activating", 0, 4, True), ("active", 1, 4, False), ("active", 0, 5, False)],
)
async def test_a_unit_that_somebody_has_restarted_did_not_fail(
    systemctl: Path, spawner: Spawner, log: Path, active: str, restarts: int, known: int, intended: bool
) -> None:
    new = await spawner.start(["sleep", "1000"], output=log)
    before = ProcessId(2**22 + known, 50) if known == 4 else ProcessId(new.pid, new.started - 1)
    text = unit(active, "start", pid=new.pid) + f"ExecMainPID={new.pid}\nNRestarts={restarts}\n"
    assert (await asked(systemctl, text, before)).intended == intended
    ended = unit(active, "start") + f"ExecMainPID={new.pid}\nNRestarts={restarts}\n"
    assert not (await asked(systemctl, ended, before)).intended  # it is down again already


async def test_a_unit_whose_stop_is_under_way_was_told_to_stop_before_systemd_has_noticed_that_its_process_ended(
    systemctl: Path,
) -> None:
    text = unit("deactivating", "stop-sigterm", pid=5) + "ExecMainPID=5\n" + MOMENTS.format(3, 7, 0)
    assert (await asked(systemctl, text, ProcessId(5, 50))).intended


async def test_a_unit_that_was_masked_and_stopped_was_stopped_on_purpose(systemctl: Path) -> None:
    assert (await asked(systemctl, unit("inactive", "dead").replace("loaded", "masked"))).intended


async def test_systemd_is_given_time_to_notice_a_death(systemctl: Path) -> None:
    sight = await asked(systemctl, unit("active", "running", pid=2**22 + 1))
    assert (sight.found, sight.intended, sight.busy) == ((), False, False)
    assert len((systemctl.parent / "calls").read_text().splitlines()) > 1


async def test_a_look_that_fails_is_no_death_and_disturbs_no_other(
    monkeypatch: pytest.MonkeyPatch, spawner: Spawner, log: Path, tmp_path: Path
) -> None:
    script(tmp_path / "bin" / "systemctl", "#!/bin/sh\necho no bus here; exit 1\n")
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    found = await spawner.start(["sleep", "1000"], output=log)
    broken = Spawner()
    table = LinuxProcessTable(broken)
    other = ProcessSettings.model_validate({"name": "other", "start": ["x"]})
    sights = await table.look([by(systemd_unit="it.service"), other], {"other": found})
    broken.close()
    assert sights["other"].found == (found,)
    assert (sights["it"].busy, sights["it"].found) == (True, ())
    assert "no bus here" in sights["it"].detail


def unsupported() -> ProcessSettings:
    """What a home has whose settings an earlier version took."""
    context = {PATTERN_CHECK: None}
    return ProcessSettings.model_validate(
        {"name": "it", "start": ["sleep", "1000"], "match": "sleep(?!.*99)"}, context=context
    )


async def test_with_a_pattern_that_is_not_supported_any_more_who_is_known_stays_and_nobody_is_started(
    table: LinuxProcessTable, spawner: Spawner, log: Path, tmp_path: Path
) -> None:
    process = unsupported()
    it = await spawner.start(["sleep", "1000"], output=log)
    assert (await seen(table, process, it)).found == (it,)
    sight = await seen(table, process)
    assert (sight.found, sight.busy) == ((), True)
    assert "RE2 does not support 'sleep(?!.*99)'" in sight.detail
    settings = Settings(process=(process,))
    restarter = RestartProcess(lambda: settings, table, dict, Lives(spawner, tmp_path), tmp_path / "logs")
    effect, event = wished("restart-process", process="it", if_dead=True)
    with pytest.raises(PulseError, match="nothing was started: nobody is searched for"):
        await restarter.execute(effect, RestartParams.model_validate(effect.params), event)


async def test_other_processes_are_searched_for_beside_a_pattern_that_is_not_supported(
    table: LinuxProcessTable, spawner: Spawner, log: Path
) -> None:
    it = await spawner.start(["sleep", "1031"], output=log)
    other = ProcessSettings.model_validate(
        {"name": "other", "start": ["sleep", "1031"], "match": "^sleep 1031$"}
    )
    async with asyncio.timeout(60):  # for a moment after its start it is not `sleep` yet
        while not (observed := (await table.look([unsupported(), other], {}))["other"]).found:
            await asyncio.sleep(0.01)
    assert (observed.found, observed.busy) == ((it,), False)
