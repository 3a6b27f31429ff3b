"""Backups beside a daemon at work, and on disks that have no room."""

import contextlib
import hashlib
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from pulse_adapters.ipc.client import Client
from pulse_adapters.sqlite.event_reader import SqliteEventReader
from pulse_adapters.sqlite.verify import verify
from tests.acceptance.conftest import Served
from tests.integration.cli.cli_home import CliHome
from tests.small_disk import small_disk

VICTIM = """
[[process]]
name = "victim"
start = ["sleep", "9020"]
restart = { max = 1000, backoff = "0s", healthy_after = "0s", grace = "1s" }

[budget]
actions_per_minute = 0
"""
BIG = {"kind": "paused", "data": {"why": "x" * 1_900}}


def fill(disk: Path, leave: int = 0) -> None:
    with contextlib.suppress(OSError), (disk / "ballast").open("ab", buffering=0) as ballast:
        while os.statvfs(disk).f_bavail * 4096 > leave:
            ballast.write(bytes(1 << 16))


def grow(served: Served, rows: int) -> None:
    with Client(served.home.socket, timeout=60) as client:
        for _ in range(rows // 100):
            client.ask("append", drafts=[BIG] * 100)


class Load:
    """Appends one event after the other, and remembers what was acknowledged, and how long the worst one took."""

    def __init__(self, served: Served) -> None:
        self.acknowledged: list[str] = []
        self.took: list[float] = []
        self._served = served
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        with Client(self._served.home.socket, timeout=60) as client:
            while not self._over.wait(0.003):  # a lively daemon, and time left for the others
                began = time.monotonic()
                answer = client.ask("append", drafts=[{"kind": "resumed", "data": {"why": "load"}}])
                self.took.append(time.monotonic() - began)
                self.acknowledged.append(answer["events"][0]["id"])

    def __enter__(self) -> "Load":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join(60)


def ids(home: Path) -> list[str]:
    with SqliteEventReader(home) as log:
        return [event.id for event in log.events()]


@pytest.mark.wall_clock
def test_a_daemon_at_work_is_backed_up_and_not_disturbed(served: Served, tmp_path: Path) -> None:
    served.configure(VICTIM)
    served.start()
    victim = served.pid_when_up("victim")
    grow(served, 6_000)
    with Load(served) as load:
        for number in range(3):
            before = list(load.acknowledged)
            CliHome(served.home.path).as_process("backup", str(tmp_path / f"backup-{number}"))
            assert set(before) <= set(ids(tmp_path / f"backup-{number}"))
            os.kill(victim, signal.SIGKILL)
            victim = served.pid_when_up("victim", other_than=victim)
    assert len(load.took) > 100
    assert (
        sorted(load.took)[-len(load.took) // 20] < 0.5
    )  # the disk is busy; nobody waits for the backup itself
    assert served.stop() == 0
    rows = ids(served.home.path)
    assert set(load.acknowledged) <= set(rows)
    assert verify(served.home.events, served.home.objects).fault == ""

    CliHome(served.home.path).upulse("restore", str(tmp_path / "backup-0"))
    assert ids(served.home.path)[: len(rows)] == rows
    served.start()
    assert served.pid_when_up("victim") == victim


def test_a_disk_without_room_is_refused_beforehand(served: Served, tmp_path: Path) -> None:
    served.configure("# nothing\n")
    served.start()
    grow(served, 4_000)
    with small_disk(tmp_path / "disk", "4m", is_demanded=True) as disk:
        refused = CliHome(served.home.path).upulse("backup", str(disk / "backup"), code=1)
        assert "the backup may need " in refused.err
        assert "make room" in refused.err
        assert list(disk.iterdir()) == []


@pytest.mark.parametrize("leave", [0, 3 << 20])
def test_a_disk_that_fills_up_meanwhile_leaves_nothing(served: Served, tmp_path: Path, leave: int) -> None:
    served.configure("# nothing\n")
    served.start()
    grow(served, 4_000)
    with small_disk(tmp_path / "disk", "48m", is_demanded=True) as disk:
        argv = [
            sys.executable,
            "-m",
            "upulse_cli",
            "backup",
            str(disk / "backup"),
            "--home",
            str(served.home.path),
        ]
        child = subprocess.Popen(argv, stderr=subprocess.PIPE, text=True)
        while not list(disk.iterdir()) and child.poll() is None:
            time.sleep(0.0005)
        child.send_signal(signal.SIGSTOP)  # or it might have copied everything before the disk is full
        fill(disk, leave)
        child.send_signal(signal.SIGCONT)
        _, words = child.communicate(timeout=60)
        assert child.returncode == 1, words
        assert "there is no room left; up to " in words
        assert [path.name for path in disk.iterdir()] == ["ballast"]
    assert served.answers()


def test_a_home_on_a_full_disk_can_be_backed_up(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", "16m", is_demanded=True) as disk:
        served = Served(disk / "home")
        try:
            served.configure(VICTIM)
            served.start()
            served.pid_when_up("victim")
            fill(disk)
            CliHome(served.home.path).upulse("backup", str(tmp_path / "backup"))
        finally:
            served.close()
    assert verify(tmp_path / "backup" / "events.db", tmp_path / "backup" / "objects").fault == ""


def test_a_restore_without_room_changes_nothing(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", "64m", is_demanded=True) as disk:
        served = Served(disk / "home")
        try:
            served.configure("# nothing\n")
            served.start()
            grow(served, 2_000)
            home = CliHome(served.home.path)
            home.upulse("backup", str(tmp_path / "backup"))
            assert served.stop() == 0
            before = {
                path.name: hashlib.sha256(path.read_bytes()).digest()
                for path in served.home.path.glob("*.db")
            }
            fill(disk, leave=1 << 20)
            assert "the restore may need " in home.upulse("restore", str(tmp_path / "backup"), code=1).err
            for name, digest in before.items():
                assert hashlib.sha256((served.home.path / name).read_bytes()).digest() == digest
            assert not (served.home.path / "restoring").exists()
            (disk / "ballast").unlink()
            home.upulse("restore", str(tmp_path / "backup"))
            home.upulse("verify")
        finally:
            served.close()
