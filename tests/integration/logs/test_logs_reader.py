"""The reader's process: killed at any time, it loses nothing and says nothing twice."""

import asyncio
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pulse_adapters.logs import reader as reader_module
from pulse_adapters.logs.reader import FollowedLogs
from pulse_adapters.logs.tail import LINES
from pulse_adapters.workers import proc
from pulse_adapters.workers.conversation import Conversation, conversation
from pulse_adapters.workers.environment import inherited_environment
from pulse_adapters.workers.worker import Program
from pulse_core.model.backoff import Backoff
from pulse_core.settings.logs import LogSettings
from tests.dead_mount import dead
from tests.engine_user import open_folder, packages_for
from tests.integration.logs.logs_ear import Ear, errors
from tests.integration.logs.logs_scene import copytruncate, rename, write
from tests.processes import child_of_test

TAIL = ("-S", "-P", "-m", "pulse_adapters.logs.tail")
ROOT = str(Path(__file__).parents[3])


async def until(holds: Callable[[], object]) -> None:
    deadline = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < deadline
        await asyncio.sleep(0.005)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "app.log"


async def test_lines_are_heard_with_their_source_and_their_place(log: Path) -> None:
    async with Ear(errors(log.parent / "*.log")) as ear:
        write(log, "fine", "ERROR one")
        await ear.until(lambda: ear.lines)
        assert ear.heard == [(str(log), "ERROR one")]
        assert ear.places[str(log)]["files"][0]["offset"] == log.stat().st_size


async def test_a_file_that_cannot_be_read_is_told_of_and_the_others_are_read_on(log: Path) -> None:
    """A link to a process's memory is a regular file by its status, and each read of it fails."""
    async with Ear(errors(log.parent / "*.log")) as ear:
        pid = ear.pid
        (bad := log.with_name("bad.log")).symlink_to("/proc/self/mem")
        write(log, "ERROR one")
        await ear.until(lambda: ear.said and ear.lines)
        write(log, "ERROR two")
        await ear.until(lambda: len(ear.lines) == 2)
        assert ear.lines == ["ERROR one", "ERROR two"]
        assert [whose for whose, _ in ear.said] == [f"log:{bad}"]
        assert "can't be read: Input/output error" in ear.said[0][1]
        assert ear.pid == pid


GONE = """
import subprocess, sys
from pathlib import Path

from pulse_adapters.logs.followed_files import FollowedFiles

def device(*how):
    return subprocess.run(["ip", "link", *how], capture_output=True, timeout=60).returncode == 0

if not any(device("add", "gone", "type", kind) for kind in ("bridge", "dummy", "veth")):
    sys.exit("no device")
log, told = Path(sys.argv[1]), []
log.symlink_to("/proc/sys/net/ipv4/conf/gone/forwarding")
files = FollowedFiles({0: str(log)}, (), {}, lambda *words: told.append(words))
assert device("del", "gone")
files.look()
print(files.behind(), [files.take(trail, 0.0) for trail in tuple(files.dirty.values())])
print(*told)
"""


@pytest.mark.skipif(os.getuid() != 0, reason="only root can make a network namespace")
def test_a_file_of_which_nothing_is_known_any_more_is_told_of_and_ends_nothing(log: Path) -> None:
    """The setting of a device that is gone stands for a file whose server has forgotten it, or ended: each call fails."""
    argv = ["unshare", "--net", sys.executable, "-c", GONE, str(log)]
    there = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)
    if there.stderr == "no device\n":
        pytest.skip("no device can be made here")
    seen, told = there.stdout.splitlines()
    assert seen == "0 [b'']"
    assert "it can't be read: No such file or directory" in told


@pytest.mark.parametrize("name", ["app.log.1", "app-20260131.log"])
async def test_a_rotated_file_that_cannot_be_read_does_not_end_the_reader(log: Path, name: str) -> None:
    """Of an attribute of a device that has none the kernel says 4,096 bytes, and each read of it fails."""
    async with Ear(errors(log.parent / "*.log")) as ear:
        pid = ear.pid
        write(log, "ERROR one")
        await ear.until(lambda: ear.lines)
        log.with_name(name).symlink_to("/sys/class/net/lo/speed")
        write(log.with_name("next.log"), "ERROR two")
        await ear.until(lambda: len(ear.lines) == 2)
        write(log, "ERROR three")
        await ear.until(lambda: len(ear.lines) == 3)
        assert ear.pid == pid
        assert "log-reader" not in [whose for whose, _ in ear.said]


async def test_what_is_there_at_first_is_history_and_what_comes_later_is_not(log: Path) -> None:
    write(log, "ERROR old")
    async with Ear(errors(log.parent / "*.log")) as ear:
        write(log, "ERROR new")
        write(log.with_name("later.log"), "ERROR later")
        await ear.until(lambda: len(ear.lines) == 2)
        assert sorted(ear.lines) == ["ERROR later", "ERROR new"]


async def test_what_is_written_once_it_stands_is_news(tmp_path: Path) -> None:
    ear = Ear(LogSettings(path=str(tmp_path / "*.log"), keywords=("ERROR",)))
    ear.reader.follow(ear.logs, {}, ())
    await ear.reader.standing(10.0)
    (tmp_path / "new.log").write_text("ERROR at once\n")
    await ear.until(lambda: [line for _, line in ear.heard] == ["ERROR at once"])
    ear.reader.close()


async def test_a_directory_may_appear_later(tmp_path: Path) -> None:
    async with Ear(errors(tmp_path / "deep" / "*" / "app.log")) as ear:
        for name in ("one", "two"):
            home = tmp_path / "deep" / name
            home.mkdir(parents=True)
            write(home / "app.log", f"ERROR {name}")
        await ear.until(lambda: len(ear.lines) == 2)
        (tmp_path / "deep" / "one" / "app.log").unlink()
        (tmp_path / "deep" / "one").rmdir()
        (tmp_path / "deep" / "one").mkdir()
        write(tmp_path / "deep" / "one" / "app.log", "ERROR again")
        await ear.until(lambda: len(ear.lines) == 3)
        assert ear.lines == ["ERROR one", "ERROR two", "ERROR again"]


@pytest.mark.wall_clock
async def test_a_line_is_heard_within_milliseconds(log: Path) -> None:
    log.touch()
    async with Ear(errors(log)) as ear:
        took = []
        for number in range(20):
            await asyncio.sleep(0.05)
            began = time.perf_counter()
            write(log, f"ERROR {number}")
            while len(ear.lines) <= number:
                await asyncio.sleep(0)
            took.append(time.perf_counter() - began)
        assert sorted(took)[len(took) // 2] < 0.05


async def test_killed_at_random_points_of_a_stream_it_says_each_line_once(
    log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reader_module, "BACKOFF", Backoff(0.01, 300.0))
    dice, written, kills = random.Random(7), 0, 0
    log.touch()
    async with Ear(errors(log.parent / "*.log", lines_per_minute=100_000)) as ear:
        while written < 30_000:
            number = dice.randrange(1, 1_500)
            write(log, *(f"ERROR {written + one}" if one % 2 else "fine" for one in range(number)))
            written += number
            if dice.random() < 0.1:
                dice.choice([rename, copytruncate])(log)
            if dice.random() < 0.3 and ear.pid:
                ear.kill()
                kills += 1
            await asyncio.sleep(dice.random() * 0.03)
        write(log, "ERROR last")
        await ear.until(lambda: "ERROR last" in ear.lines)
        await asyncio.sleep(0.2)
    assert kills > 2
    assert max(len(hits.lines) for one in ear.messages for hits in one.hits) <= LINES
    numbers = [line for line in ear.lines if line != "ERROR last"]
    assert len(numbers) == len(set(numbers))
    assert len(numbers) == ear.counted - 1
    expected = {int(line.split()[1]) for line in numbers}
    assert max(expected) >= written - 1_500
    assert len(expected) == sum(1 for line in every_line(log) if line.startswith("ERROR")) - 1


def every_line(log: Path) -> list[str]:
    return [line for path in log.parent.iterdir() for line in path.read_text().splitlines()]


async def test_a_reader_that_dies_is_begun_again_and_that_is_said(log: Path) -> None:
    write(log, "fine")
    async with Ear(errors(log)) as ear:
        first = ear.pid
        ear.kill()
        write(log, "ERROR meanwhile")
        await ear.until(lambda: ear.lines)
        assert ear.lines == ["ERROR meanwhile"]
        assert ear.pid != first
        assert ear.said == [("log-reader", "was ended by SIGKILL and is begun again")]


async def test_a_reader_that_is_stuck_is_begun_again(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader_module, "SILENCE", 0.5)
    log.touch()
    async with Ear(errors(log)) as ear:
        os.kill(ear.pid, signal.SIGSTOP)
        await ear.until(lambda: ear.said)
        monkeypatch.setattr(reader_module, "SILENCE", 60.0)
        write(log, "ERROR after")
        await ear.until(lambda: ear.lines)
        assert ear.said[0] == ("log-reader", "said nothing for 0.5 s and is begun again")


async def test_a_reader_that_the_kernel_holds_is_waited_for_by_nobody_and_reaped_in_the_end(
    log: Path,
) -> None:
    place, asked = log.parent / "dead", log.parent / "asked"
    place.mkdir()
    reader = FollowedLogs(lambda *_: None)
    with dead(place, reads=True, reader=("dd", "bs=128K", f"of={asked}", "status=none")) as fail:
        reader.follow((errors(place / "app.log"),), {}, ())
        (pid,) = reader.running
        await until(lambda: asked.exists() and asked.stat().st_size > 0)  # before, a signal would end it
        await until(lambda: Path(f"/proc/{pid}/wchan").read_text() == "request_wait_answer")
        reader.follow((), {}, ())
        assert not reader.running
        assert proc.start_time_of(pid) is not None
        fail()
        await until(lambda: not Path(f"/proc/{pid}").exists())
    reader.close()


async def test_a_reader_that_cannot_be_started_is_said_and_tried_again(
    log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log.touch()
    monkeypatch.setattr(reader_module, "BACKOFF", Backoff(0.05, 300.0))
    program = reader_module.program
    monkeypatch.setattr(reader_module, "program", lambda: Program(("/nowhere/python",), {}))
    ear = Ear(errors(log))
    ear.reader.follow(ear.logs, {}, ())
    assert ear.said == [("log-reader", "cannot be started: No such file or directory")]
    monkeypatch.setattr(reader_module, "program", program)
    await ear.until(lambda: ear.progress.sources)
    write(log, "ERROR one")
    await ear.until(lambda: ear.lines)
    ear.reader.close()


async def test_nonsense_of_the_reader_is_its_fault_and_it_is_begun_again(
    log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = (
        "from pulse_adapters.workers import child_side; child_side.send({'hits': 5, 'source': 'x'}); input()"
    )
    raving = Program((sys.executable, "-c", code), inherited_environment())
    monkeypatch.setattr(reader_module, "program", lambda: raving)
    ear = Ear(errors(log))
    ear.reader.follow(ear.logs, {}, ())
    await ear.until(lambda: ear.said)
    ((whose, words),) = ear.said
    assert whose == "log-reader"
    assert words.startswith("said place: Field required")
    ear.reader.close()


SAYS_WHAT_IT_HEARS = """
from pulse_adapters.workers import child_side
requests = child_side.requests()
next(requests)
for source in ("a", "b", "a"):
    child_side.send({"source": source, "place": {}, "hits": []})
for request in requests:
    child_side.send({"error": ["heard", ",".join(request["recorded"])]})
"""
"""Sends three messages, and then what it is told of them."""


async def test_a_reader_is_not_told_of_what_an_earlier_one_has_sent(
    log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reader_module, "BACKOFF", Backoff(0.01, 300.0))
    program = Program((sys.executable, "-c", SAYS_WHAT_IT_HEARS), inherited_environment())
    monkeypatch.setattr(reader_module, "program", lambda: program)
    ear, taken = Ear(errors(log)), list[object]()
    ear.reader.listen(lambda: taken.extend(ear.reader.take()))
    ear.reader.follow(ear.logs, {}, ())
    await ear.until(lambda: len(taken) == 3)
    ear.reader.recorded(["b"])
    await ear.until(lambda: ear.said)
    ear.kill()
    await ear.until(lambda: len(taken) == 6)
    ear.reader.recorded(["a", "b", "a"])
    ear.reader.recorded(["a"])
    await ear.until(lambda: len(ear.said) == 4)
    assert [words for whose, words in ear.said if whose == "log:heard"] == ["b", "b", "a"]
    ear.reader.follow(ear.logs, {}, ())
    await ear.until(lambda: len(taken) == 9)
    ear.reader.recorded(["a", "a"])
    await ear.until(lambda: len(ear.said) == 5)
    assert ear.said[-1] == ("log:heard", "a")
    ear.reader.close()


async def test_a_reader_that_fails_says_with_its_last_words_why(
    log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failing = Program((sys.executable, "-c", "raise SystemExit('no such thing')"), {})
    monkeypatch.setattr(reader_module, "program", lambda: failing)
    ear = Ear(errors(log))
    ear.reader.follow(ear.logs, {}, ())
    await ear.until(lambda: ear.said)
    assert ear.said == [("log-reader", "ended with status 1 and is begun again: no such thing")]
    ear.reader.close()


async def test_no_reader_lives_where_nothing_is_followed_or_after_its_end(log: Path) -> None:
    reader = FollowedLogs(lambda *_: None)
    reader.follow((), {}, ())
    assert not reader.running
    reader.follow((errors(log),), {}, ())
    (pid,) = reader.running
    reader.follow((), {}, ())
    assert not reader.running
    reader.close()
    assert not Path(f"/proc/{pid}").exists()


async def test_a_reader_ends_with_whoever_started_it(log: Path) -> None:
    parent = f"""
import asyncio, os
from pulse_adapters.logs.reader import FollowedLogs
from pulse_core.model.backoff import Backoff
from pulse_core.settings.logs import LogSettings
async def main():
    reader = FollowedLogs(lambda *_: None)
    reader.follow((LogSettings(path={str(log)!r}, keywords=("ERROR",)),), {{}}, ())
    print(*reader.running, flush=True)
    await asyncio.sleep(60)
asyncio.run(main())
"""
    with child_of_test(
        subprocess.Popen([sys.executable, "-c", parent], stdout=subprocess.PIPE, text=True, cwd=ROOT)
    ) as daemon:
        assert daemon.stdout is not None
        pid = int(daemon.stdout.readline())
        await asyncio.sleep(0.2)
        daemon.kill()
    deadline = time.monotonic() + 60
    while proc.start_time_of(pid) is not None:
        assert time.monotonic() < deadline
        await asyncio.sleep(0.01)


async def test_new_settings_go_on_where_the_old_ones_stood(log: Path) -> None:
    log.touch()
    async with Ear(errors(log)) as ear:
        write(log, "ERROR one", "WARN one")
        await ear.until(lambda: ear.lines)
        await ear.follow(LogSettings(path=str(log), keywords=("WARN",)))
        write(log, "ERROR two", "WARN two")
        await ear.until(lambda: len(ear.lines) == 2)
        assert ear.lines == ["ERROR one", "WARN two"]


async def test_two_rules_see_the_same_lines_and_say_them_together_each_line_once(log: Path) -> None:
    log.touch()
    full = LogSettings(path=str(log.parent / "*.log"), match=("disk .* full",), severity="critical")
    async with Ear(errors(log), full) as ear:
        write(log, "ERROR: disk /dev/x full", "fine", "ERROR: else")
        await ear.until(lambda: ear.messages)
        assert [(hits.log, hits.lines, hits.number) for hits in ear.messages[0].hits] == [
            (1, ("ERROR: disk /dev/x full",), 1),
            (0, ("ERROR: else",), 1),
        ]


async def test_a_storm_is_told_up_to_the_limit_and_counted_to_the_end(log: Path) -> None:
    log.touch()
    async with Ear(errors(log, lines_per_minute=600)) as ear:
        for _ in range(50):
            write(log, *["ERROR: too much of it", "fine"] * 2_000)
            await asyncio.sleep(0.005)
        await ear.until(lambda: ear.counted >= 2_000)
        ear.kill()  # what was only counted goes with a place, too
        await ear.until(lambda: ear.counted >= 100_000, 40)
        assert ear.counted == 100_000
        assert 600 <= len(ear.lines) <= 1_200  # the reader that was killed had its own minute
        assert len(ear.messages) < 60


async def test_a_nested_repetition_takes_no_longer_than_another_pattern(log: Path) -> None:
    log.touch()
    nested = LogSettings(path=str(log), match=(r"^(a+)+$",))
    async with Ear(nested, errors(log)) as ear:
        write(log, *["a" * 2_000 + "!"] * 200, "aaa", "ERROR after it")
        await ear.until(lambda: len(ear.lines) == 2, 10)
        assert sorted(ear.lines) == ["ERROR after it", "aaa"]
        assert ear.said == []


async def test_invalid_utf_8_and_zeros_are_told_as_text(log: Path) -> None:
    async with Ear(errors(log)) as ear:
        log.write_bytes(b"\xff ERROR \x00 \xc3\n")
        await ear.until(lambda: ear.lines)
        assert ear.lines == ["\ufffd ERROR ? \ufffd"]


async def test_what_may_not_be_read_is_said(request: pytest.FixtureRequest) -> None:
    words = "it may not be read by the user Pulse runs as; give that user the right"
    with open_folder() as folder:
        write(log := folder / "app.log", "ERROR secret")
        log.chmod(0)
        if os.geteuid() != 0:
            async with Ear(errors(log)) as ear:
                await ear.until(lambda: ear.said)
                assert ear.said == [(f"log:{log}", words)]
            return
        open_python = request.getfixturevalue("open_python")
        said = await tail(log, prefix=("setpriv", "--reuid=65534", "--clear-groups"), python=open_python)
        assert {"error": [str(log), words]} in said


@pytest.mark.parametrize(("limit", "number"), [("instances", 0), ("watches", 1)])
async def test_without_inotify_files_are_polled_and_that_is_said_once(
    log: Path, limit: str, number: int
) -> None:
    write(log, "fine")
    script = f'echo {number} > /proc/sys/user/max_inotify_{limit}; exec "$@"'
    prefix = ("unshare", "--user", "--map-root-user", "sh", "-c", script, "sh")
    probe = subprocess.run([*prefix, "true"], capture_output=True, check=False, timeout=60)
    if probe.returncode:
        pytest.skip(f"no user namespace: {probe.stderr.decode()}")
    said = await tail(log, prefix=prefix, lines=("ERROR one", "ERROR two"))
    errors_said = [one["error"] for one in said if "error" in one]
    assert len(errors_said) == 1
    assert errors_said[0][0] == "inotify"
    assert f"fs.inotify.max_user_{limit}" in errors_said[0][1]
    assert [one["hits"][0][1] for one in said if "hits" in one] == [["ERROR one"], ["ERROR two"]]


async def tail(
    log: Path, prefix: tuple[str, ...] = (), lines: tuple[str, ...] = (), python: str = sys.executable
) -> list[dict[str, Any]]:
    """What a bare reader says of a file that gets these lines, one after the other."""
    rule = {
        "path": str(log),
        "unit": None,
        "user": False,
        "keywords": ["ERROR"],
        "match": [],
        "ignore": [],
        "severity": "error",
        "lines_per_minute": 9,
    }
    env = {**inherited_environment(), "PYTHONPATH": os.pathsep.join(packages_for(python))}
    said = []
    async with conversation(Program((*prefix, python, *TAIL), env), dict) as child, asyncio.timeout(60):
        child.tell({"logs": [rule], "places": {}, "patterns": [], "journalctl": ["journalctl"]})
        while "sources" not in (message := await heard(child)):
            said.append(message)
        for line in lines:
            write(log, line)
            while "hits" not in (message := await heard(child)):
                said.append(message)
            said.append(message)
    return said


async def heard(child: Conversation[dict[str, Any]]) -> dict[str, Any]:
    message = await child.next()
    assert message is not None, await child.end()
    return message
