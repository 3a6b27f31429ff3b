"""Deaths and a storm of log lines on a disk that takes nothing; the long form, ten minutes, is `make campaign`."""

import json
import os
import signal
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest

from pulse_adapters.ipc.lock import holder
from pulse_adapters.sqlite.event_reader import SqliteEventReader
from pulse_adapters.sqlite.verify import verify
from pulse_core.model.errors import LogUnavailable, NotAnswering
from pulse_core.ports.readers import EventQuery
from tests.acceptance.conftest import Served
from tests.btrfs_disk import btrfs_disk
from tests.campaign.bad_disk import HangingDisk, NoSuchDisk, campaign
from tests.integration.cli.cli_home import CliHome
from tests.long_form import sampled
from tests.read_only_mount import read_only

VICTIM = """
[[process]]
name = "victim"
start = ["sleep", "9012"]
restart = { max = 1000, backoff = "0s", healthy_after = "0s", grace = "1s" }
"""


@pytest.mark.timeout(600)
@pytest.mark.parametrize("kind", sampled(["full", "read-only"], 2))
def test_every_death_is_answered_and_said_while_the_disk_takes_nothing(tmp_path: Path, kind: str) -> None:
    try:
        seen = campaign(kind, tmp_path, seconds=1.0, seed=int(os.environ.get("PULSE_SEED", "7")))
    except NoSuchDisk as error:
        must = kind == "full" and os.environ.get("CI")
        (pytest.fail if must else pytest.skip)(f"this machine makes no such disk: {error}")
    assert seen["deaths"] >= 3
    assert kind == "read-only" or seen["left out"] > 0  # more than there is room for


def test_a_killed_daemon_starts_where_nothing_can_be_written_any_more_and_records_it_once_it_can(
    served: Served, tmp_path: Path
) -> None:
    served.configure(VICTIM)
    served.said = tmp_path / "said"
    served.start()
    first = served.pid_when_up("victim")
    acknowledged = served.append("resumed")["id"]
    served.kill()
    with read_only(served.home.path) as mend:
        served.start()
        os.kill(first, signal.SIGKILL)
        second = served.pid_when_up("victim", other_than=first)
        assert served.daemon
        held = holder(served.home.lock)
        assert held
        assert held.pid == served.daemon.pid
        told = CliHome(served.home.path).upulse("why", "victim").out
        assert "held in memory" in told
        assert "1 process-died" in told
        assert f"by now victim is up: process {second} is alive" in told
        assert "the output is not kept" in told
        with pytest.raises(LogUnavailable, match="file system is read-only"):
            served.append("resumed")
        again = subprocess.run(
            [served.python, "-m", "upulse_cli.serve", "--home", str(served.home.path)],
            capture_output=True, text=True, timeout=60,
        )  # fmt: skip
        assert (again.returncode, "held by process" in again.stderr) == (1, True)
        served.kill()  # and with it all that it held
        served.start()
        assert served.pid_when_up("victim") == second
        assert "the output is not kept" in served.process("victim")["why"]
        mend()
        served.eventually(lambda: is_all_recorded(served), "what was held is recorded")
        assert "the output is not kept" in served.process("victim")["why"]
        assert served.append("resumed")
        assert served.stop() == 0
    with SqliteEventReader(served.home.path) as log:
        events = list(log.events())
    assert acknowledged in {event.id for event in events}
    assert any(event.kind == "process-up" and f'"pid":{second}' in event.data for event in events)
    assert verify(served.home.events, served.home.objects).fault == ""


def test_a_disk_that_hangs_keeps_nothing_dead_and_loses_nothing(tmp_path: Path) -> None:
    # Python forks to start as another user: for that, no thread may wait for the disk with the map of memory locked.
    try:
        disk = HangingDisk(tmp_path)
    except NoSuchDisk as error:
        pytest.skip(f"this machine makes no such disk: {error}")
    served = Served(disk.path / "home")
    served.said = tmp_path / "said"
    try:
        served.configure(f'{VICTIM}user = "nobody"\n')
        served.start("--background")
        pids = [served.pid_when_up("victim")]
        acknowledged = [served.append("resumed")["id"] for _ in range(5)]
        disk.spoil()
        for _ in range(3):
            os.kill(pids[-1], signal.SIGKILL)
            pids.append(served.pid_when_up("victim", other_than=pids[-1]))
        with pytest.raises(LogUnavailable, match="the log hangs"):
            served.append("resumed")
        disk.mend()
        served.eventually(lambda: not served.status()["log"]["unwritten"], "what was held is recorded")
        assert served.stop() == 0
        with SqliteEventReader(served.home.path) as log:
            assert [event.id for event in log.events(EventQuery(kinds=("resumed",)))] == acknowledged
            ups = [json.loads(event.data)["pid"] for event in log.events(EventQuery(kinds=("process-up",)))]
        assert ups == pids
        assert verify(served.home.events, served.home.objects).fault == ""
    finally:
        with suppress(NoSuchDisk):  # or nothing could be ended
            disk.mend()
        served.close()
        disk.close()


@pytest.mark.timeout(300)
def test_a_full_disk_that_writes_what_changes_to_another_place_keeps_nothing_dead_and_lets_a_daemon_start(
    tmp_path: Path,
) -> None:
    with btrfs_disk(tmp_path) as disk:
        served = Served(disk.path / "home")
        served.said = tmp_path / "said"
        try:
            served.configure(VICTIM)
            served.start()
            pids = [served.pid_when_up("victim")]
            acknowledged = served.append("resumed")["id"]
            disk.take_snapshot()
            disk.fill()
            with suppress(LogUnavailable):
                served.append("resumed")  # the reserve is given up for it
            disk.fill()
            for begun_again in (False, True):
                if begun_again:
                    served.kill()
                    served.start()
                for _ in range(3):
                    os.kill(pids[-1], signal.SIGKILL)
                    pids.append(served.pid_when_up("victim", other_than=pids[-1]))
                with pytest.raises(LogUnavailable):
                    served.append("resumed")
            assert CliHome(served.home.path).upulse("verify").code == 0
            disk.make_room()
            served.eventually(lambda: is_all_recorded(served), "what was held is recorded")
            assert served.stop() == 0
            with SqliteEventReader(served.home.path) as log:
                events = list(log.events())
            assert acknowledged in {event.id for event in events}
            assert any(event.kind == "process-up" and f'"pid":{pids[-1]}' in event.data for event in events)
            assert verify(served.home.events, served.home.objects).fault == ""
        finally:
            served.close()


def is_all_recorded(served: Served) -> bool:
    with suppress(NotAnswering):  # for a moment, while the socket gets its file again
        return not served.status()["log"]["unwritten"]
    return False
