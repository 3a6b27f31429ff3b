"""Processes that keep what they show of themselves locked: nobody waits for them, and the others are read all the same."""

import asyncio
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from subprocess import Popen

import pytest

from pulse_adapters.files.in_use import find_files_in_use
from pulse_adapters.host import marked_processes
from pulse_adapters.host.listening_ports import holds_socket
from pulse_adapters.host.marked_processes import MarkedProcesses, find_bearers
from pulse_adapters.host.process_search import find_matching
from pulse_adapters.host.tree_usage import process_usage, shared_once
from pulse_adapters.workers import proc, process_memory
from pulse_adapters.workers.descriptor_share import SpareDescriptor
from pulse_adapters.workers.environment import EFFECT_MARK
from pulse_adapters.workers.process_memory import (
    MEMORY,
    MOST,
    MOST_KEPT_BYTES,
    MOST_USERS,
    REMEMBERED_S,
    Hanging,
    ProcessMemory,
    _Batch,
    _User,
)
from pulse_adapters.workers.process_tree import in_tree, live_process_table
from pulse_core.model.pattern import SearchPattern
from pulse_core.ports.host import ProcessId
from tests.descriptors import take_descriptors
from tests.memory_hog import memory_hog
from tests.processes import child_of_test

SECONDS, SLOW = 1.5, 0.05
NOBODY = 65534


@pytest.fixture
def hog() -> Iterator[int]:
    with memory_hog(NOBODY if os.getuid() == 0 else None) as process:
        yield process.pid
    MEMORY.__init__()  # type: ignore[misc] # of this user no process hangs any more


def test_a_process_that_works_on_its_memory_would_hold_who_reads_it(hog: int) -> None:
    slowest, until = 0.0, time.monotonic() + 20
    while slowest < SLOW and time.monotonic() < until:
        slowest = max(slowest, seconds_of(Path(f"/proc/{hog}/environ").read_bytes))
    assert slowest >= SLOW


async def test_without_descriptors_nobody_is_taken_for_one_that_shows_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    spare = SpareDescriptor()
    for module in (proc, process_memory, marked_processes):
        monkeypatch.setattr(module, "SPARE", spare)
    env = {"WORD": "here", EFFECT_MARK: "its-effect"}
    with child_of_test(Popen(["sleep", "987.5"], env=env)) as one, ExitStack() as filled:
        filled.callback(one.kill)
        before = proc.environment(one.pid)
        assert b"\0WORD=here\0" in before
        spare.hold()
        take_descriptors(filled)
        for _ in range(2):
            with pytest.raises(OSError, match="Too many open files"):  # the spare one is held again
                os.open(os.devnull, os.O_RDONLY)
            assert proc.environment(one.pid) == before
            assert [it.pid for it in await find_bearers(effect="its-effect")] == [one.pid]
            found = await find_matching({"it": SearchPattern(r"^sleep 987\.5$")})
            assert [it.pid for it in found["it"]] == [one.pid]


LEADERLESS = (
    "import ctypes, threading, time; threading.Thread(target=time.sleep, args=(1000,)).start()"
    "; ctypes.CDLL(None).pthread_exit(None)"
)


async def test_who_has_ended_its_first_thread_shows_what_it_was_started_with() -> None:
    """The kernel shows nothing of that thread; without control groups what it detached would be nobody's."""
    argv, env = [sys.executable, "-c", LEADERLESS], {**os.environ, EFFECT_MARK: "its-effect"}
    with (
        tempfile.NamedTemporaryFile() as file,
        socket.create_server(("127.0.0.1", 0)) as server,
        child_of_test(Popen(argv, env=env, pass_fds=[server.fileno(), file.fileno()])) as one,
    ):
        while not (seen := proc.read_stat(one.pid)) or seen.state != "Z":
            assert one.poll() is None
        assert proc.command_line(one.pid) == argv
        assert proc.has_marker(one.pid, "its-effect")
        assert [it.pid for it in await find_bearers(effect="its-effect")] == [one.pid]
        usage = process_usage(one.pid)
        assert usage
        assert usage.memory > 1 << 20
        assert usage.descriptors
        assert shared_once([one.pid])
        assert holds_socket(one.pid, frozenset([str(os.fstat(server.fileno()).st_ino).encode()]))
        assert file.name in find_files_in_use().paths
        one.kill()


def test_a_pidfd_of_one_at_whom_nobody_can_look_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proc, "SPARE", SpareDescriptor())
    own = ProcessId(os.getpid(), proc.start_time_of(os.getpid()) or 0)
    with ExitStack() as filled:
        last = take_descriptors(filled).pop()
        os.close(last)
        for _ in range(2):
            with pytest.raises(OSError, match="Too many open files"):
                proc.open_pidfd(own)
        assert os.open(os.devnull, os.O_RDONLY) == last  # which is closed at the end


SHOWN = """
import os, sys
from pulse_adapters.files.in_use import find_files_in_use
from pulse_adapters.host.listening_ports import holds_socket
from pulse_adapters.host.tree_usage import shared_once
from pulse_adapters.workers.proc import environment
pid, inode, path = int(sys.argv[1]), sys.argv[2].encode(), sys.argv[3]
print(environment(pid), holds_socket(pid, frozenset([inode])), path in find_files_in_use().paths, bool(shared_once([pid])))
print(os.access("/proc/self/environ", os.R_OK), environment(os.getpid()) != b"", os.geteuid())
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a process to another user")
def test_a_root_who_may_not_look_into_others_is_shown_what_their_users_are(tmp_path: Path) -> None:
    """As in a container, which leaves out CAP_SYS_PTRACE."""
    path = tmp_path / "open"
    with socket.create_server(("127.0.0.1", 0)) as server, path.open("w") as file:
        inode = os.readlink(f"/proc/self/fd/{server.fileno()}").strip("socket:[]")
        other = Popen(
            ["sleep", "1000"],
            user=NOBODY,
            group=NOBODY,
            extra_groups=[],
            env={EFFECT_MARK: "it"},
            pass_fds=(server.fileno(), file.fileno()),
        )
        server.close()
        file.close()
        asker = [
            "setpriv",
            "--bounding-set=-all,+setuid,+setgid,+dac_override",
            "--inh-caps=-all",
            sys.executable,
            "-c",
            SHOWN,
        ]
        with child_of_test(other):
            told = subprocess.run(
                [*asker, str(other.pid), inode, str(path)], capture_output=True, text=True, timeout=60
            )
            other.kill()
    assert (told.stdout, told.stderr) == (
        f"b'\\x00{EFFECT_MARK}=it\\x00\\x00' True True True\nTrue True 0\n",
        "",
    )


@pytest.mark.wall_clock
async def test_no_search_waits_for_a_process_that_keeps_its_memory_locked(hog: int) -> None:
    """Half as long as who reads it, at most: that takes the longer, too, the more others want a processor."""
    searches, reads, until = list[float](), list[float](), time.monotonic() + SECONDS
    marked, root = MarkedProcesses(), ProcessId(hog, proc.start_time_of(hog) or 0)
    while time.monotonic() < until or len(reads) < 5:
        for ask in (
            marked.search,
            lambda: proc.has_marker(hog, "any"),
            lambda: proc.described(hog),
            lambda: list(in_tree(root, f"{EFFECT_MARK}=any")(live_process_table())),
        ):
            searches.append(seconds_of(ask))
        reads.append(seconds_of(Path(f"/proc/{hog}/environ").read_bytes))
        await asyncio.sleep(0.01)
    assert sorted(searches)[len(searches) * 3 // 4] < sorted(reads)[len(reads) // 2] / 2, (searches, reads)


def seconds_of(ask: Callable[[], object]) -> float:
    begun = time.monotonic()
    ask()
    return time.monotonic() - begun


async def test_beside_a_process_that_hangs_the_others_are_found(hog: int) -> None:
    marked = MarkedProcesses()
    for _ in range(20):
        marked.search()
        await asyncio.sleep(0.02)
    env = {**os.environ, EFFECT_MARK: "of-the-test"}
    with child_of_test(Popen(["sleep", "987.25"], env=env)) as one:
        async with asyncio.timeout(20):
            while not (borne := await find_bearers(effect="of-the-test")):
                await asyncio.sleep(0.01)
            while not (found := (await find_matching({"it": SearchPattern("sleep 987[.]25")}))["it"]):
                await asyncio.sleep(0.01)
        assert [[each.pid for each in some] for some in (borne, found)] == [[one.pid]] * 2
        one.kill()


@pytest.mark.skipif(os.getuid() != 0, reason="only root may become another user")
async def test_the_processes_of_a_user_are_read_at_once_while_those_of_another_one_hang() -> None:
    memory = ProcessMemory()
    with memory_hog(NOBODY, gib=24) as process:  # so that a fast machine is held for as long as counts, too
        async with asyncio.timeout(20):
            while not memory.is_slow(NOBODY):
                memory.read_all("environ", [process.pid])
                await asyncio.sleep(0.01)
        assert not memory.is_slow(0)
        assert isinstance(memory.read_all("environ", [process.pid, os.getpid()])[os.getpid()], bytes)


async def test_what_was_read_in_the_end_is_the_answer_to_a_later_question(hog: int) -> None:
    memory = ProcessMemory()
    async with asyncio.timeout(30):
        while not isinstance(memory.read("cmdline", hog), Hanging):
            await asyncio.sleep(0)
        while isinstance(told := memory.read("cmdline", hog), Hanging):
            await asyncio.sleep(0.01)
    assert told.endswith(b"hog\x008\x0016\x00")


@pytest.mark.skipif(os.getuid() != 0, reason="only root may become another user")
@pytest.mark.parametrize("keeps_answers", [True, False])
def test_no_user_is_taken_for_slow_after_others_of_whom_nothing_hangs_any_more(
    keeps_answers: bool,
) -> None:
    memory, now = ProcessMemory(), time.monotonic()
    for uid in range(70_000, 70_000 + MOST_USERS):
        user, batch = _User(), _Batch("environ", (os.getpid(),), MOST)
        user.slow = user.since = now - 2 * REMEMBERED_S
        memory._users[uid] = user
        if keeps_answers:
            user.threads[batch] = now
            memory.keep(batch, os.getpid(), b"read in the end, and never asked for")
            memory.end(batch)
    with child_of_test(Popen(["sleep", "987.5"], user=NOBODY)) as one:
        for _ in range(2):
            memory.read("environ", one.pid)
        assert not memory.is_slow(NOBODY)
        one.kill()


def test_answers_that_nobody_asks_for_fill_no_memory() -> None:
    memory, batch = ProcessMemory(), _Batch("environ", range(2, 100), MOST)
    user = memory._users[NOBODY] = _User()
    user.threads[batch] = time.monotonic()
    for pid in batch.pids:
        memory.keep(batch, pid, bytes(MOST))
    assert len(user.told) == MOST_KEPT_BYTES // MOST


def test_what_is_gone_and_what_may_not_be_read_shows_nothing() -> None:
    one, memory = Popen(["true"]), ProcessMemory()
    one.wait(60)
    assert memory.read_all("environ", [one.pid, 2]) == {one.pid: b"", 2: b""}
    assert memory.read("environ", os.getpid())


def test_a_forked_child_reads_with_threads_of_its_own() -> None:
    assert proc.environment(os.getpid())
    if (pid := os.fork()) == 0:
        os._exit(0 if proc.environment(os.getppid()) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
