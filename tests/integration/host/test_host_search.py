"""The pass over the command lines of real processes: right after an exec, a new title, a pid given out again."""

import asyncio
import os
import subprocess
import sys
import time
import uuid
from collections.abc import Collection, Mapping
from pathlib import Path

import pytest

from pulse_adapters.host import process_search
from pulse_adapters.host.marked_processes import SETTLED
from pulse_adapters.host.process_search import (
    SEARCHED,
    argv_of,
    command_line_of,
    find_matching,
    may_be_in_exec,
)
from pulse_adapters.host.spawner import Spawner
from pulse_adapters.workers.proc import children, command_line, pids, read_stat, start_time_of
from pulse_adapters.workers.process_memory import HANGING, MEMORY, MOST, ProcessMemory, Told
from pulse_core.model.pattern import SearchPattern
from pulse_core.ports.host import ProcessId
from tests.engine_user import ROOT_ALONE
from tests.integration.host.host_scene import bury, child, until
from tests.processes import child_of_test


@pytest.fixture
def word() -> str:
    return f"w{uuid.uuid4().hex}"


async def found(pattern: str) -> tuple[ProcessId, ...]:
    return (await find_matching({"it": SearchPattern(pattern)}))["it"]


EXEC = """
import os, sys, time
while not os.path.exists(sys.argv[1]): time.sleep(0.005)
os.execvp("sleep", ["sleep", "1000"])
"""


def sleeper(*words: str) -> list[str]:
    """No shell: between its fork and exec its child would have the same command line."""
    return [sys.executable, "-c", "import time; time.sleep(1000)", *words]


async def test_an_exec_is_seen_though_pid_and_start_time_stay(
    spawner: Spawner, log: Path, word: str, tmp_path: Path
) -> None:
    go = tmp_path / "go"
    it = await spawner.start([sys.executable, "-c", EXEC, str(go), word], output=log)
    await until(lambda: word in command_line(it.pid))
    assert await found(word) == (it,)
    assert await found(rf"(?s)execvp.*{word}") == (it,)
    go.touch()
    await until(lambda: command_line(it.pid) == ["sleep", "1000"])
    assert await found(word) == ()
    assert it in await found(r"^sleep 1000$")


TITLE = """
import ctypes, sys
argv = ctypes.string_at  # the kernel shows the memory in which argv was: whoever writes there has a new title
start = int(open("/proc/self/stat").read().rsplit(")", 1)[1].split()[45])
print("ready", flush=True)
sys.stdin.readline()
ctypes.memmove(start, sys.argv[1].encode(), len(sys.argv[1]))
print("renamed", flush=True)
sys.stdin.readline()
"""


async def test_a_title_that_a_process_writes_itself_is_seen(mark: str, word: str) -> None:
    argv = [sys.executable, "-c", TITLE, word]
    process = await asyncio.create_subprocess_exec(
        *argv, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    assert process.stdin is not None
    assert process.stdout is not None
    await process.stdout.readline()
    assert await found(f"^{word}") == ()
    process.stdin.write(b"\n")
    await process.stdout.readline()
    assert [one.pid for one in await found(f"^{word}")] == [process.pid]
    process.stdin.write(b"\n")
    await process.wait()


def reborn(dead: int, *argv: str) -> bool:
    """Start a program under the pid of a dead one; False if the kernel does not let us."""
    for _ in range(50):
        try:
            Path("/proc/sys/kernel/ns_last_pid").write_text(str(dead - 1))
        except OSError:
            return False
        if (pid := child(*argv)) == dead:
            return True
        os.kill(pid, 9)
        bury(pid)
    return False


async def test_a_pid_given_out_again_is_another_process(mark: str, word: str) -> None:
    old = child("/bin/sleep", "1000", "0")
    await until(lambda: command_line(old))
    assert old in [one.pid for one in await found(r"^/bin/sleep 1000 0$")]
    os.kill(old, 9)
    bury(old)
    if not reborn(old, *sleeper(word)):
        pytest.skip("only root may say which pid comes next")
    try:
        await until(lambda: word in command_line(old))
        assert old not in [one.pid for one in await found(r"^/bin/sleep 1000 0$")]
        assert await found(word) == (ProcessId(old, start_time_of(old) or 0),)
    finally:
        os.kill(old, 9)
        bury(old)


async def test_the_dead_are_not_found(mark: str, word: str) -> None:
    pid = child(*sleeper(word))
    await until(lambda: word in command_line(pid))
    assert [one.pid for one in await found(word)] == [pid]
    os.kill(pid, 9)
    await until(lambda: not start_time_of(pid))
    assert await found(word) == ()  # a zombie
    bury(pid)
    assert await found(word) == ()


async def test_who_is_just_being_executed_is_found(word: str) -> None:
    for number in range(20):
        with child_of_test(
            subprocess.Popen(sleeper(f"{word}-{number}"))
        ) as one:  # it returns when the exec has begun
            try:
                pids = [seen.pid for seen in await found(f"{word}-{number}$")]
                # With no processor for a tenth of a second it counts as one that hangs; then nobody is started for a name.
                assert pids == [one.pid] or (not pids and MEMORY.is_slow(os.getuid()))
            finally:
                one.kill()


ENTERED = """
import os, subprocess
from pulse_adapters.host.process_search import may_be_in_exec
entered = subprocess.Popen(["sleep", "1000"])
assert os.getsid(entered.pid) == 0, "its session is that of this machine, which nobody sees in here"
assert may_be_in_exec(entered.pid, 0.0)
"""


@ROOT_ALONE
def test_who_entered_a_namespace_is_no_thread_of_the_kernel() -> None:
    inside = ("unshare", "--pid", "--fork", "--kill-child", "--mount-proc", sys.executable, "-c", ENTERED)
    ended = subprocess.run(inside, capture_output=True, text=True, timeout=60)
    assert ended.returncode == 0, ended.stderr
    if os.getpid() > 2 and (seen := read_stat(2)) and seen.of_kernel:
        assert not may_be_in_exec(2, 0.0)


@pytest.mark.parametrize("told", [b"", HANGING], ids=["shows none", "keeps it locked, as in its exec"])
@pytest.mark.parametrize(("age", "looks"), [(0, 8), (SETTLED + 1, 4)])
async def test_who_shows_no_command_line_is_waited_for_unless_it_is_old(
    mark: str, word: str, monkeypatch: pytest.MonkeyPatch, age: int, looks: int, told: Told
) -> None:
    pid, asked = child(*sleeper(word)), list[int]()

    class Blank(ProcessMemory):
        def read_all(self, name: str, pids: Collection[int], most: int = MOST) -> Mapping[int, Told]:
            asked.extend(pids)
            return {**super().read_all(name, pids, most), **({pid: told} if pid in pids else {})}

    try:
        born = start_time_of(pid)
        assert born
        monkeypatch.setattr(process_search, "ticks_now", lambda: born + age)
        monkeypatch.setattr(process_search, "MEMORY", Blank())
        # As where nobody's processes hung of late.
        monkeypatch.setattr(process_search, "is_slow_to_show", lambda _: False)
        assert await found(word) == ()
        assert asked.count(pid) == looks
    finally:
        os.kill(pid, 9)
        bury(pid)


async def test_nobody_who_has_a_command_line_is_passed_over(mark: str) -> None:
    before, seen, after = everybody(), {pid: argv_of(command_line_of(pid)) for pid in pids()}, everybody()
    stayed = {
        pid: argv
        for pid, argv in before.items()
        if argv == after.get(pid) and argv and len(str(argv)) < SEARCHED
    }
    assert os.getpid() in stayed
    blank = [pid for pid in stayed if seen.get(pid) == [""]]  # the kernel may show none, and is asked again
    again = {pid: argv_of(command_line_of(pid)) for pid in blank}
    assert {pid: argv for pid, argv in {**seen, **again}.items() if pid in stayed} == stayed


def everybody() -> dict[int, list[str]]:
    return {pid: command_line(pid) for pid in pids()}


async def test_of_a_long_argv_only_the_first_4096_characters_are_searched(
    spawner: Spawner, log: Path, word: str
) -> None:
    near = await spawner.start(sleeper("é" * 3_000, word), output=log)
    await spawner.start(sleeper("é" * 5_000, word), output=log)
    await until(lambda: command_line(near.pid)[-1:] == [word])
    assert await found(word) == (near,)


LEADER = """
import os, subprocess, sys, time
subprocess.Popen([sys.executable, "-c", "import time; time.sleep(1000)", os.environ["WORD"]])
time.sleep(1000)
"""


@pytest.mark.parametrize(("before", "is_pulse"), [(1, True), (5 * SEARCHED, False)])
async def test_of_the_command_line_of_a_leader_no_more_is_looked_at(
    spawner: Spawner, log: Path, word: str, before: int, is_pulse: bool
) -> None:
    argv = [sys.executable, "-c", LEADER, "x" * before, "-m", "upulse_cli"]
    leader = await spawner.start(argv, output=log, env={"WORD": word})
    await until(lambda: any(command_line(pid)[-1:] == [word] for pid in children(leader.pid)))
    assert bool(await found(word)) is not is_pulse


async def test_a_neighbours_command_line_makes_no_search_long(mark: str, word: str) -> None:
    pids = [child(*sleeper(word, "a" * length + "!")) for length in (3_000, 3_001)]
    try:
        await until(lambda: all(word in command_line(pid) for pid in pids))
        began = time.thread_time()
        assert await found(f"{word} (a+)+$") == ()
        assert time.thread_time() - began < 1
        assert {one.pid for one in await found(f"{word} (a+)+!$")} == set(pids)
    finally:
        for pid in pids:
            os.kill(pid, 9)
            bury(pid)
