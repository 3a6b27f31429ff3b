"""The disk of the home is really full: what is guarded is kept alive, and nobody is told a lie."""

import os
import shutil
import signal
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from itertools import count
from pathlib import Path

import pytest

from pulse_adapters.ipc.client import Client
from pulse_adapters.sqlite.event_reader import SqliteEventReader
from pulse_adapters.sqlite.verify import verify
from pulse_core.model.errors import LogUnavailable
from pulse_core.ports.readers import EventQuery
from tests import processes
from tests.acceptance.conftest import Served
from tests.control_groups import skip_without_groups, where_none_can_be_made
from tests.integration.cli.cli_home import CliHome
from tests.small_disk import small_disk

VICTIM = """
[[process]]
name = "victim"
start = ["sleep", "9010"]
restart = { max = 1000, backoff = "0s", healthy_after = "0s", grace = "1s" }
"""


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    """A file system of 16 MiB and 1,000 inodes."""
    with small_disk(tmp_path / "disk", "16m,nr_inodes=1000", is_demanded=True) as disk:
        yield disk


def fill(disk: Path) -> None:
    with (disk / "ballast").open("ab", buffering=0) as ballast:
        for size in (1 << 20, 1 << 12, 1):
            try:
                while True:
                    ballast.write(bytes(size))
            except OSError:
                continue


def take_inodes(disk: Path) -> Callable[[], None]:
    """Leave no inode; what is given back frees them again."""
    (taken := disk / "taken").mkdir()
    with suppress(OSError):
        for number in count():
            (taken / str(number)).touch()
    return partial(shutil.rmtree, taken)


def is_appended(served: Served) -> bool:
    """The daemon tries twice a second whether the disk takes anything."""
    try:
        served.append("resumed")
    except LogUnavailable:
        return False
    return True


def append_without_end(served: Served) -> None:
    big = {"kind": "paused", "data": {"why": "x" * 1900}}
    with Client(served.home.socket, timeout=60) as client:
        for _ in range(200):
            client.ask("append", drafts=[big] * 100)


def conditions(served: Served) -> list[str]:
    return [one["name"] for one in served.status()["conditions"]]


def child_of(served: Served) -> int:
    """The victim's pid, from the kernel: the daemon's own word for it is what is tested."""
    assert served.daemon is not None
    return next(iter(processes.children(served.daemon.pid, "9010")), 0)


def test_a_victim_is_replaced_on_a_full_disk_and_the_log_tells_it_later(small: Path, tmp_path: Path) -> None:
    served = Served(small / "home")
    try:
        served.configure(VICTIM)
        served.start()
        served.pid_when_up("victim")
        for _ in range(3):  # the reserve is freed at the first refusal, and then it is full for good
            fill(small)
            first = served.eventually(lambda: child_of(served), "a victim")
            os.kill(first, signal.SIGKILL)
            served.eventually(lambda first=first: child_of(served) not in (0, first), "a new victim")  # type: ignore[misc]
        with pytest.raises(LogUnavailable):
            append_without_end(served)
        served.eventually(
            lambda: "unwritten" in conditions(served), "it is said that nothing can be recorded"
        )
        said = CliHome(served.home.path).upulse("incidents").err
        assert "Not in it: the log can't be written; held in memory: " in said
        (small / "ballast").unlink()
        served.eventually(lambda: is_appended(served), "appends are taken again")
        served.pid_when_up("victim")
        assert served.process("victim")["restarts"] >= 3
        served.eventually(lambda: "unwritten" not in conditions(served), "it is over")
        assert served.stop() == 0
        with SqliteEventReader(served.home.path) as log:
            told = [
                row
                for row in log.events(EventQuery(kinds=("effect",)))
                if row.subject == "notify:resource:unwritten"
            ]
        assert len(told) >= 1
        assert verify(served.home.events, served.home.objects).fault == ""
    finally:
        served.close()


@pytest.mark.parametrize("reserve", [True, False], ids=["reserve", "no reserve"])
def test_a_daemon_that_was_killed_comes_back_on_a_full_disk(small: Path, reserve: bool) -> None:
    served = Served(small / "home")
    try:
        served.configure(VICTIM)
        served.start()
        first = served.pid_when_up("victim")
        served.kill()
        if not reserve:
            served.home.reserve.unlink()
        fill(small)
        os.kill(first, signal.SIGKILL)
        served.start()
        assert served.pid_when_up("victim", other_than=first)
    finally:
        served.close()


def test_what_was_started_on_a_full_disk_goes_on_as_the_process_without_control_groups_when_the_daemon_is_killed(
    small: Path, tmp_path: Path
) -> None:
    served = Served(small / "home")
    served.said, served.is_forked = (
        tmp_path / "said",
        False,
    )  # a fork is in the group of the process that forks
    try:
        with where_none_can_be_made(skip_without_groups()):
            served.configure(VICTIM)
            served.start()
            served.pid_when_up("victim")
            second = child_of(served)
            for _ in range(3):  # the reserve is freed at the first refusal, and then it is full for good
                fill(small)
                os.kill(first := second, signal.SIGKILL)
                served.eventually(lambda first=first: child_of(served) not in (0, first), "a new victim")  # type: ignore[misc]
                second = child_of(served)
            served.kill()
            served.start()
            assert served.pid_when_up("victim") == second
            (small / "ballast").unlink()
            served.eventually(lambda: is_appended(served), "appends are taken again")
            os.kill(second, signal.SIGKILL)
            served.pid_when_up("victim", other_than=second)
    finally:
        served.close()


@pytest.mark.parametrize("way", ["inodes", "blocks"])
def test_a_stopped_daemon_starts_without_room_for_a_new_file_and_records_it_once_there_is(
    small: Path, tmp_path: Path, way: str
) -> None:
    served = Served(small / "home")
    served.said = tmp_path / "said"
    try:
        served.configure(VICTIM)
        served.start()
        first = served.pid_when_up("victim")
        acknowledged = served.append("resumed")["id"]
        assert served.stop() == 0  # nothing is left beside the log
        served.home.reserve.unlink()
        if way == "inodes":
            free = take_inodes(small)
        else:
            fill(small)
            free = (small / "ballast").unlink
        told = CliHome(served.home.path).upulse("doctor", code=1)  # since the disk is so small
        assert "--accept-damage" not in told.out
        assert acknowledged in CliHome(served.home.path).upulse("events", "--kind", "resumed", "--json").out
        assert verify(served.home.events, served.home.objects).fault == ""
        os.kill(first, signal.SIGKILL)
        for _ in range(2):
            served.start()
            second = served.pid_when_up("victim", other_than=first)
            with pytest.raises(LogUnavailable, match="nothing was recorded"):
                served.append("resumed")
            served.kill()
        served.start()
        free()
        served.eventually(lambda: is_appended(served), "appends are taken again")
        assert served.stop() == 0
        with SqliteEventReader(served.home.path) as log:
            assert log.event(acknowledged)
            ups = log.events(EventQuery(kinds=("process-up",)))
            assert any(f'"pid":{second}' in event.data for event in ups)
        assert verify(served.home.events, served.home.objects).fault == ""
        assert not list(served.home.path.glob("vitals.db.unusable*"))
    finally:
        served.close()
