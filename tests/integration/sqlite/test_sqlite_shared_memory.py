"""The -shm of the log or of the vitals is cut under the daemon, or has no room: it lives, and all rows are there."""

import errno
import mmap
import os
import sqlite3
import subprocess
import sys
from contextlib import closing, suppress
from pathlib import Path

import pytest

from pulse_adapters.sqlite import connect, shared_memory
from pulse_adapters.sqlite.open_log import Opening, open_writer
from pulse_adapters.sqlite.verify import verify
from pulse_adapters.workers.database_files import files_of
from pulse_adapters.workers.syscalls import file_system_magic
from tests.btrfs_disk import btrfs_disk
from tests.processes import child_of_test
from tests.small_disk import small_disk

CODE = """
import asyncio, os, sys
from pathlib import Path
from pulse_adapters.host.clock import SystemClock
from pulse_adapters.objects.files import FileObjects
from pulse_adapters.sqlite.events import SqliteEventLog
from pulse_adapters.sqlite.vitals import SqliteVitals
from pulse_core.model.event import Draft
from pulse_core.model.kinds import Paused

async def main(home, size):
    clock = SystemClock()
    log = SqliteEventLog.open(home / "events.db", clock=clock, objects=FileObjects(home / "objects"))
    async with log as log, SqliteVitals.open(home / "vitals.db") as vitals:
        for number in range(3):
            await log.append(Draft(Paused(why=f"{number}")))
            vitals.sample("key", clock.now(), {})
            await vitals.flush()
            os.truncate(home / "events.db-shm", size)
            os.truncate(home / "vitals.db-shm", size)
            await log.check()
        await log.append(Draft(Paused(why="last")))
        print(log.head.seq, len(await vitals.recent(0)), vitals.dropped)

asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2])))
"""


@pytest.mark.parametrize("size", [0, 4_096])
def test_a_shared_memory_that_is_cut_ends_nobody_and_loses_nothing(tmp_path: Path, size: int) -> None:
    argv = [sys.executable, "-c", CODE, str(tmp_path), str(size)]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (0, "4 3 0\n"), done.stderr
    assert verify(tmp_path / "events.db", tmp_path / "objects")[:2] == (4, "")


OPENED = """
import sqlite3, sys
from contextlib import suppress
from pathlib import Path
from pulse_adapters.sqlite.connect import connect_readonly
from pulse_adapters.sqlite.open_log import Opening, open_writer

with suppress(sqlite3.OperationalError):
    open_writer(Path(sys.argv[1]), Opening())
print(*connect_readonly(Path(sys.argv[1])).execute("SELECT count(*) FROM event").fetchone(), "rows")
"""
FULL = """
import asyncio, os, sys
from pathlib import Path
from pulse_adapters.host.clock import SystemClock
from pulse_adapters.objects.files import FileObjects
from pulse_adapters.sqlite.events import SqliteEventLog
from pulse_adapters.sqlite.vitals import SqliteVitals
from pulse_core.model.errors import LogUnavailable
from pulse_core.model.event import Draft
from pulse_core.model.kinds import Paused

async def main(home):
    clock = SystemClock()
    log = SqliteEventLog.open(home / "events.db", clock=clock, objects=FileObjects(home / "objects"))
    async with log as log, SqliteVitals.open(home / "vitals.db") as vitals:
        await log.append(Draft(Paused(why="first")))
        refused = 0
        while line := (print("ready", flush=True), sys.stdin.readline().strip())[1]:
            if line == "cut":
                os.truncate(home / "events.db-shm", 0)
                os.truncate(home / "vitals.db-shm", 0)
                continue
            vitals.sample("key", clock.now(), {})
            await vitals.flush()
            try:
                await log.append(Draft(Paused(why=line)))
            except LogUnavailable:
                refused += 1
        print(log.head.seq, refused, flush=True)

asyncio.run(main(Path(sys.argv[1])))
"""

READ = """
import sys
from pathlib import Path
from pulse_adapters.sqlite.verify import verify
print(verify(Path(sys.argv[1]) / "events.db", Path(sys.argv[1]) / "objects")[0])
"""


def said(daemon: "subprocess.Popen[str]", *lines: str) -> str:
    """What it says after the last of these."""
    assert daemon.stdin
    assert daemon.stdout
    told = ""
    for line in lines:
        daemon.stdin.write(f"{line}\n")
        daemon.stdin.flush()
        told = daemon.stdout.readline()
    return told


def served(home: Path) -> "subprocess.Popen[str]":
    argv, pipe = [sys.executable, "-c", FULL, str(home)], subprocess.PIPE
    daemon = subprocess.Popen(argv, stdin=pipe, stdout=pipe, text=True)
    assert daemon.stdout
    assert daemon.stdout.readline() == "ready\n"
    return daemon


@pytest.mark.timeout(300)
def test_a_full_disk_that_writes_what_changes_to_another_place_ends_neither_writer_nor_reader(
    tmp_path: Path,
) -> None:
    with btrfs_disk(tmp_path) as disk, child_of_test(served(disk.path)) as daemon:
        assert said(daemon, *map(str, range(20))) == "ready\n"
        disk.fill()
        assert said(daemon, *map(str, range(20))) == "ready\n"
        argv = [sys.executable, "-c", READ, str(disk.path)]
        assert subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False).stdout == "21\n"
        disk.make_room()
        assert said(daemon, "last") == "ready\n"
        assert said(daemon, "") == "22 20\n"
        assert verify(disk.path / "events.db", disk.path / "objects")[:2] == (22, "")


def test_a_log_that_its_last_writer_closes_as_a_reader_opens_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, mode_for, was_open = tmp_path / "events.db", connect.read_mode_for, [connect.ReadMode.BESIDE]
    with closing(sqlite3.connect(path)) as writer:
        writer.execute("PRAGMA journal_mode = WAL")
        writer.execute("CREATE TABLE one (value)")
    monkeypatch.setattr(connect, "read_mode_for", lambda path: was_open.pop() if was_open else mode_for(path))
    with closing(connect.connect_readonly(path)) as reader:
        assert reader.execute("SELECT count(*) FROM one").fetchone() == (0,)
    assert not was_open


@pytest.mark.skipif(mmap.PAGESIZE <= 1_024, reason="no blocks are smaller than pages")
@pytest.mark.parametrize("room", [10_240, 16_384])
def test_where_blocks_are_smaller_than_pages_a_full_disk_ends_nobody_who_opens_the_log(
    tmp_path: Path, room: int
) -> None:
    """SQLite makes the last byte of each page of the -shm, which takes a block, and writes the others as to memory."""
    with btrfs_disk(tmp_path, ("mkfs.ext4", "-q", "-b", "1024", "-m", "0")) as disk:
        path = disk.path / "events.db"
        open_writer(path, Opening())[0].close()
        disk.fill()
        for _ in range(5):  # what was set aside for metadata is room again after a sync
            with (disk.path / "rest").open("ab", buffering=0) as rest, suppress(OSError):
                while True:
                    rest.write(bytes(1_024))
            subprocess.run(["sync", "-f", disk.path], check=False, timeout=60)
        os.truncate(disk.path / "ballast", os.path.getsize(disk.path / "ballast") - room)
        subprocess.run(["sync", "-f", disk.path], check=False, timeout=60)
        files_of(path).shm.unlink(missing_ok=True)
        argv = [sys.executable, "-c", OPENED, str(path)]
        done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)
        assert (done.returncode, done.stdout) == (0, "0 rows\n"), done.stderr


def test_where_such_a_disk_has_hardly_any_room_no_shared_memory_is_made_to_open_a_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.EDQUOT, os.strerror(errno.EDQUOT))

    path = tmp_path / "events.db"
    open_writer(path, Opening())[0].close()
    monkeypatch.setattr(shared_memory, "_BTRFS", file_system_magic(str(tmp_path)))
    with monkeypatch.context() as full:
        full.setattr(os, "posix_fallocate", refuse)
        connection, start = open_writer(path, Opening())
        with closing(connection):
            assert (start.is_read_only, files_of(path).shm.exists()) == (True, False)
    connection, start = open_writer(path, Opening())
    with closing(connection):
        assert not start.is_read_only


def test_a_shared_memory_that_is_cut_on_a_full_disk_ends_nobody(tmp_path: Path) -> None:
    with small_disk(tmp_path / "small", "8m") as home, child_of_test(served(home)) as daemon:
        assert said(daemon, *map(str, range(5))) == "ready\n"
        assert said(daemon, "cut") == "ready\n"
        with (home / "ballast").open("wb", buffering=0) as file, suppress(OSError):
            while True:
                file.write(bytes(4_096))
        assert said(daemon, *map(str, range(5))) == "ready\n"
        (home / "ballast").unlink()
        assert said(daemon, "last") == "ready\n"
        assert said(daemon, "") == "7 5\n"
        assert verify(home / "events.db", home / "objects")[:2] == (7, "")
