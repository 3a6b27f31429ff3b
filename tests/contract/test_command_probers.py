"""What runs commands promises: on this machine, and in memory."""

import asyncio
import os
import sys
import threading
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from pulse_adapters.host import command_trees, marked_processes
from pulse_adapters.host.command_prober import LocalCommandProber
from pulse_adapters.host.marked_processes import MarkedProcesses
from pulse_adapters.host.spawner import Spawner
from pulse_adapters.memory.commands import MemoryCommands
from pulse_adapters.workers import proc, process_tree
from pulse_adapters.workers.proc import ProcStat, environment, live_processes
from pulse_core.ports.commands import CommandAnswer, CommandProber, CommandRequest
from pulse_core.ports.host import ProcessId


@pytest.fixture
async def prober(tmp_path: Path) -> AsyncIterator[LocalCommandProber]:
    spawner = Spawner()
    prober = LocalCommandProber(spawner, str(tmp_path))
    yield prober
    await prober.close()
    spawner.close()


@pytest.fixture(params=["memory", "local"])
async def commands(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[CommandProber]:
    for name, body in {"good": "exit 0", "bad": "echo no; exit 3", "stuck": "sleep 1000"}.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{body}\n")
        (tmp_path / name).chmod(0o755)
    if request.param == "memory":
        bad = CommandAnswer(False, "'bad' exited with 3: no", 3, 5.0)
        missing = CommandAnswer(None, "there is no such program")
        yield MemoryCommands(
            {str(tmp_path / "bad"): bad, str(tmp_path / "none"): missing}, {str(tmp_path / "stuck")}
        )
        return
    spawner = Spawner()
    prober = LocalCommandProber(spawner, str(tmp_path))
    yield prober
    await prober.close()
    spawner.close()


def request_of(path: Path, seconds: float = 60) -> CommandRequest:
    return CommandRequest(f"check:{path.name}", [str(path)], round(seconds * 1_000_000))


async def test_the_exit_says_whether_it_is_well(commands: CommandProber, tmp_path: Path) -> None:
    good, bad = await asyncio.gather(*(commands.ask(request_of(tmp_path / name)) for name in ("good", "bad")))
    assert (good.ok, good.exit) == (True, 0)
    assert (bad.ok, bad.exit) == (False, 3)
    assert bad.words.endswith("exited with 3: no")
    assert min(good.took_ms, bad.took_ms) > 0


async def test_what_takes_too_long_is_ended_and_is_not_well(commands: CommandProber, tmp_path: Path) -> None:
    result = await commands.ask(request_of(tmp_path / "stuck", 0.2))
    assert (result.ok, result.exit, result.took_ms) == (False, None, 200)


async def test_what_can_not_be_run_says_nothing(commands: CommandProber, tmp_path: Path) -> None:
    result = await commands.ask(request_of(tmp_path / "none"))
    assert (result.ok, result.exit) == (None, None)
    assert "there is no such" in result.words


async def test_a_command_of_a_prober_that_ends_is_ended(tmp_path: Path) -> None:
    spawner = Spawner()
    prober = LocalCommandProber(spawner, str(tmp_path))
    os.mkfifo(tmp_path / "begun")
    argv = ["sh", "-c", f"echo > {tmp_path / 'begun'}; sleep 1000"]
    coming = prober.ask(CommandRequest("check:it", argv, 300_000_000))
    assert await asyncio.to_thread((tmp_path / "begun").read_text) == "\n"
    await prober.close()
    assert coming.cancelled()
    assert not spawner.running
    spawner.close()


async def test_commands_that_end_at_once_are_looked_after_together_and_beside_the_loop(
    prober: LocalCommandProber, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    requests = [CommandRequest(f"check:{number}", ["true"], 60_000_000) for number in range(20)]
    await asyncio.gather(*map(prober.ask, requests))  # looks for what an earlier one has left, too
    search, searches = MarkedProcesses.search, list[int]()

    def noted(self: MarkedProcesses, most: int | None = None) -> bool:
        searches.append(threading.get_ident())
        return search(self, most)

    monkeypatch.setattr(MarkedProcesses, "search", noted)
    monkeypatch.setattr(marked_processes, "SHORT_S", 0.0)  # a short one alone would be made on the loop
    assert all(answer.ok for answer in await asyncio.gather(*map(prober.ask, requests)))
    assert searches
    assert threading.get_ident() not in searches


async def test_commands_that_take_too_long_cost_no_search_of_the_whole_machine(
    prober: LocalCommandProber, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    argv = ["sh", "-c", "sleep 1000 & setsid sleep 1000 & wait"]
    requests = [CommandRequest(f"check:{number}", argv, 300_000) for number in range(20)]
    monkeypatch.setattr(process_tree.SHARED, "asked", lambda: pytest.fail("all processes were read"))
    assert {answer.ok for answer in await asyncio.gather(*map(prober.ask, requests))} == {False}
    assert not [one for one in live_processes() if f"@{tmp_path}\0".encode() in environment(one.pid)]


MANY_THREADS = """
import threading, time
for _ in range(150):
    threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()
time.sleep(1000)
"""


@pytest.mark.parametrize(
    "argv",
    [
        ["sh", "-c", "i=0; while [ $i -lt 60 ]; do sleep 1000 & i=$((i+1)); done; wait"],
        [sys.executable, "-c", MANY_THREADS],
    ],
    ids=["children", "threads"],
)
async def test_a_command_of_many_children_or_threads_is_not_read_on_the_loop(
    prober: LocalCommandProber, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, argv: list[str]
) -> None:
    read, files = proc.read_proc_file, list[str]()

    def noted(path: str) -> bytes | None:
        if threading.current_thread() is threading.main_thread():
            files.append(path)
        return read(path)

    kill_few, few = command_trees._kill_few, list[str]()

    def bounded(main: ProcessId) -> list[ProcessId]:
        with monkeypatch.context() as patched:
            patched.setattr(proc, "read_proc_file", noted)
            killed = kill_few(main)
        few.extend(files)
        return killed

    monkeypatch.setattr(command_trees, "_kill_few", bounded)
    assert not (await prober.ask(CommandRequest("check:it", argv, 2_000_000))).ok
    assert 0 < len(few) <= 2 * command_trees.FEW
    assert not [one for one in live_processes() if f"@{tmp_path}\0".encode() in environment(one.pid)]


async def test_what_sleeps_uninterruptibly_is_not_looked_at_again_and_again(
    prober: LocalCommandProber, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a file system that does not answer: there many probes hang at once."""
    looks, hanging = list[int](), dict[int, ProcStat]()

    def read(pid: int) -> ProcStat | None:
        looks.append(pid)
        if (seen := proc.read_stat(pid)) and seen.parent != os.getpid():
            hanging[pid] = seen._replace(state="D")
        return hanging.get(pid, seen)

    monkeypatch.setattr(command_trees, "read_stat", read)
    monkeypatch.setattr(
        command_trees, "is_alive", lambda found: bool(looks.append(found.pid)) or found.pid in hanging
    )
    request = CommandRequest("check:it", ["sh", "-c", "sleep 1000 & wait"], 300_000)
    assert not (await prober.ask(request)).ok
    assert hanging
    assert len(looks) < 50


async def test_none_searches_on_since_another_one_has_just_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spawner = Spawner()
    prober = LocalCommandProber(spawner, str(tmp_path))
    request = CommandRequest("check:it", ["true"], 60_000_000)
    await prober.ask(request)  # looks for what an earlier one has left, too
    search, searches = MarkedProcesses.search, list[int]()
    other = (await spawner.run(["true"], timeout=60)).found

    def noted(self: MarkedProcesses, most: int | None = None) -> bool:
        if not search(self, most):
            return False
        searches.append(other.pid)
        self.unsure.clear()
        self.lost = {other.pid: "", other.pid + 1: "another's"}
        return True

    monkeypatch.setattr(MarkedProcesses, "search", noted)
    assert (await prober.ask(request)).ok
    assert len(searches) == 1
    await prober.close()
    spawner.close()
