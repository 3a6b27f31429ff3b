"""A file system that does not answer holds up nobody but who needs it."""

import asyncio
import errno
import os
import queue
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn

import pytest

from pulse_adapters.config.settings_check import mount_points
from pulse_adapters.host import settings_doubts
from pulse_adapters.host import spawner as spawner_module
from pulse_adapters.host.disks import is_local
from pulse_adapters.host.pid_files import PidFiles
from pulse_adapters.host.process_table import LinuxProcessTable
from pulse_adapters.host.settings_doubts import doubts_of
from pulse_adapters.host.spawner import Spawner
from pulse_adapters.workers import file_threads
from pulse_adapters.workers.file_systems import has_others
from pulse_adapters.workers.file_threads import REMEMBERED_S, FileThreads, RecentMounts
from pulse_adapters.workers.proc import read_stat
from pulse_adapters.workers.spawn import ReachedProgram, reach_program
from pulse_core.model.errors import PulseError
from pulse_core.settings.processes import ProcessSettings
from tests.dead_mount import dead
from tests.integration.host.host_scene import script
from tests.processes import child_of_test

DEAD = "/dead"
threads = partial(FileThreads, is_needed=lambda: True, in_child=False)


@pytest.fixture
def mended() -> Iterator[threading.Event]:
    """Until it is set, what asks about the dead file system waits."""
    event = threading.Event()
    yield event
    event.set()


def reach(mended: threading.Event) -> Callable[..., ReachedProgram]:
    def look(program: str, env: dict[str, str], cwd: str | None, *more: Any) -> ReachedProgram:
        if DEAD in (program, cwd):
            mended.wait(60)
        return reach_program(program, env, cwd, *more)

    return look


async def test_one_that_does_not_answer_is_asked_once_and_no_longer_than_its_patience() -> None:
    files, mended, asked = threads(0.0), threading.Event(), list[str]()

    def question() -> str:
        asked.append("x")
        mended.wait(60)
        return "it"

    for _ in range(3):
        with pytest.raises(TimeoutError, match="the file system of /dead does not answer"):
            await files.ask(DEAD, question)
    files.patience_s = 60.0
    assert await files.ask("/alive", lambda: 7) == 7
    assert len(asked) == 1
    mended.set()
    assert await files.ask(DEAD, question) == "it"


async def test_many_that_ask_the_same_at_once_get_one_answer() -> None:
    files, go, asked = threads(), threading.Event(), list[str]()

    def question() -> int:
        asked.append("x")
        go.wait(60)
        return 1

    asking = asyncio.gather(*(files.ask("/slow", question) for _ in range(9)))
    await asyncio.sleep(0)
    go.set()
    assert await asking == [1] * 9
    assert len(asked) == 1


async def test_what_it_says_is_raised_where_it_was_asked() -> None:
    def refuse() -> NoReturn:
        raise PermissionError(13, "denied")

    with pytest.raises(PermissionError):
        await threads().ask("/closed", refuse)


@pytest.mark.parametrize("where", ["program", "cwd"])
async def test_nobody_starts_there_and_everybody_else_starts(
    spawner: Spawner, log: Path, mended: threading.Event, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    monkeypatch.setattr(spawner_module, "reach_program", reach(mended))
    spawner._files = threads(60.0)
    argv, cwd = ([DEAD], None) if where == "program" else (["sleep", "1000"], DEAD)
    dead = asyncio.create_task(spawner.start(argv, output=log, cwd=cwd))
    await asyncio.sleep(0)
    alive = await spawner.start(["sleep", "1000"], output=log)
    assert alive.pid
    assert not dead.done()
    dead.cancel()
    spawner._files.patience_s = 0.0
    with pytest.raises(PulseError, match=f"cannot start .*the file system of .*{DEAD}.* does not answer"):
        await spawner.start(argv, output=log, cwd=cwd)
    with pytest.raises(PulseError, match="does not answer"):
        await spawner.run(argv, timeout=60, cwd=cwd)


async def test_what_only_one_may_have_goes_to_the_first_that_waits_or_is_given_back() -> None:
    files, mended, given = threads(0.0), threading.Event(), queue.SimpleQueue[int]()

    def open_it() -> int:
        mended.wait(60)
        return 7

    for _ in range(2):  # the second one is not asked at all
        with pytest.raises(TimeoutError, match="the file system of /dead does not answer"):
            await files.take(DEAD, open_it, given.put)
    mended.set()
    assert await asyncio.to_thread(given.get, timeout=60) == 7
    files.patience_s = 60.0
    assert await files.take("/alive", open_it, given.put) == 7
    assert given.empty()


async def test_an_output_there_is_not_kept_and_whoever_prints_it_starts(
    spawner: Spawner, log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def take(about: str, *_: object) -> NoReturn:
        raise TimeoutError(f"the file system of {about} does not answer")

    monkeypatch.setattr(spawner._files, "take", take)
    said = list[str]()
    assert (await spawner.start(["sleep", "1000"], output=log, unlogged=said.append)).pid
    ended = await spawner.run(["true"], timeout=60, log=log)
    words = f"the file system of {log} does not answer; the output is not kept"
    assert [*said, ended.unlogged] == [words] * 2


async def test_who_is_named_by_a_file_there_is_neither_up_nor_dead(
    table: LinuxProcessTable, mended: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(PidFiles, "observe", lambda *_: mended.wait(60))
    table._files = threads(0.0)
    process = ProcessSettings.model_validate({"name": "it", "start": ["sleep"], "pid_file": f"{DEAD}/pid"})
    sight = (await table.look([process], {}))["it"]
    assert (sight.found, sight.busy) == ((), True)
    assert "the file system of /dead/pid does not answer" in sight.detail
    monkeypatch.setattr(settings_doubts, "FileThreads", partial(threads, 0.0))
    assert "the file system of /dead/pid does not answer" in (await doubts_of([process]))["it"]


@pytest.mark.parametrize(
    ("place", "kind", "others"),
    [
        ("/srv", "nfs4", True),
        ("/run/user/1000/gvfs", "fuse.gvfsd-fuse", True),
        ("/mnt", "never-heard-of", True),
        ("/srv", "ext4", False),
        ("/proc/sys/fs/binfmt_misc", "autofs", False),
    ],
)
def test_threads_are_for_machines_with_file_systems_that_others_answer_for(
    tmp_path: Path, place: str, kind: str, others: bool
) -> None:
    table = tmp_path / "mountinfo"
    lines = (
        "21 1 254:0 / / rw,relatime - ext4 /dev/vda rw",
        f"33 21 0:29 / {place} rw,nosuid shared:7 master:1 - {kind} a-server:/what rw,addr=x",
    )
    table.write_text("\n".join(lines) + "\n")
    assert has_others(str(table)) is others


@pytest.mark.parametrize("name", ["a b", "a\tb", "a\nb", "a\\b", "a\\040b", "a#b"])
def test_what_is_mounted_at_an_odd_name_is_known_to_be_of_others(tmp_path: Path, name: str) -> None:
    (place := tmp_path / name).mkdir()
    with dead(place):
        assert not is_local(str(place))
        assert str(place) in mount_points()


def test_interpreters_that_never_end_are_looked_at_a_few_times(tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.write_text(f"#!{own}\n")
    assert reach_program(str(own), {}, str(tmp_path)).path == str(own)
    relative = script(tmp_path / "relative", "exit 0")
    assert reach_program("./relative", {}, str(relative.parent)).path == "./relative"
    assert reach_program(str(tmp_path / "none"), {}, None).path == str(tmp_path / "none")


def test_what_is_mounted_is_looked_at_once_for_all_questions_of_a_moment() -> None:
    answers, now = [True, False], [100.0]
    are_others = RecentMounts(answers.pop, lambda: now[0])
    assert (are_others(), are_others(), answers) == (False, False, [True])
    now[0] += REMEMBERED_S
    assert (are_others(), answers) == (True, [])


async def test_no_thread_waits_for_a_server_that_has_read_what_it_was_asked(tmp_path: Path) -> None:
    (place := tmp_path / "place").mkdir()
    with dead(place, reads=True) as fail:
        files = FileThreads(0.5)
        with pytest.raises(TimeoutError, match="does not answer"):
            await files.ask(str(place), (place / "it").exists)
        tasks = Path("/proc/self/task").glob("*/stat")
        assert "D" not in [one.read_text().rpartition(")")[2].split()[0] for one in tasks]
        fail()
        files.patience_s = 60.0
        with pytest.raises(OSError, match=r"not connected|denied"):
            await files.ask(str(place), partial(os.listdir, place))


async def test_a_child_that_nobody_has_a_descriptor_to_wait_for_is_reaped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(pid: int) -> None:
        asked.append(pid)
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    asked, files = list[int](), FileThreads(30.0, is_needed=lambda: True)
    monkeypatch.setattr(files, "_has_others", lambda: True)
    fails = SimpleNamespace(**{**vars(os), "pidfd_open": full})
    monkeypatch.setattr("pulse_adapters.workers.file_systems.os", fails)
    with pytest.raises(OSError, match="Too many open files"):
        await files.ask(str(tmp_path), tmp_path.exists)
    assert [read_stat(pid) for pid in asked] == [None]


async def test_whether_a_match_works_in_its_directory_is_asked_beside_the_loop(
    spawner: Spawner, tmp_path: Path
) -> None:
    (place := tmp_path / "place").mkdir()
    words = ["sleep", f"{os.getpid()}.25"]
    process = ProcessSettings(name="worker", start=tuple(words), match=" ".join(words), cwd=str(place))
    gaps = list[float]()

    async def measure() -> None:
        while True:
            began = time.monotonic()
            await asyncio.sleep(0.01)
            gaps.append(time.monotonic() - began)

    with child_of_test(subprocess.Popen(words, cwd=tmp_path)) as child, dead(place) as fail:
        rescue = threading.Timer(8.0, fail)  # else whoever waits on the loop does so for ever
        rescue.start()
        measured = asyncio.create_task(measure())
        seen = (await LinuxProcessTable(spawner).look([process], {}))["worker"]
        measured.cancel()
        rescue.cancel()
        child.kill()
    assert max(gaps) < 4.0
    assert (seen.found, seen.busy) == ((), True)
    assert f"the file system of {place} does not answer" in seen.detail


async def test_a_child_that_never_asks_is_ended_though_the_daemon_handles_signals(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As one whose fork came while another thread held what its question needs."""
    (place := tmp_path / "place").mkdir()
    loop, own = asyncio.get_running_loop(), os.getpid()
    monkeypatch.setattr(file_threads, "_LONGEST_S", 1)
    loop.add_signal_handler(signal.SIGALRM, str)
    try:
        with dead(place):
            files, began = FileThreads(30.0), loop.time()
            with pytest.raises(TimeoutError, match="of elsewhere does not answer"):
                await files.ask("elsewhere", lambda: os.getpid() == own or time.sleep(3600))
            assert loop.time() - began < 20.0
    finally:
        loop.remove_signal_handler(signal.SIGALRM)
