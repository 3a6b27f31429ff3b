"""A pipe in the place of a file of the home is told, and hangs nobody."""

import logging
import os
import sqlite3
import subprocess
from contextlib import closing, nullcontext
from pathlib import Path

import pytest

from pulse_adapters.host.daemon_log_file import PrivateFileHandler
from pulse_adapters.ipc.checks import LockChecks
from pulse_adapters.ipc.daemon_process import DaemonProcess
from pulse_adapters.sqlite.backup.known_rows import LAST_BACKUP, last_backup
from pulse_adapters.sqlite.checkpoints import SqliteCheckpoints, read_checkpoints
from pulse_adapters.sqlite.connect import connect_readonly, refuse_damage
from pulse_adapters.sqlite.damage import set_aside
from pulse_adapters.sqlite.open_log import Opening, open_writer
from pulse_adapters.sqlite.vitals import SqliteVitals
from pulse_core.app.doctor import FAIL
from pulse_core.home import HomeLayout
from pulse_core.model.errors import Damaged, PulseError
from pulse_core.model.event import Checkpoint, Head
from pulse_core.model.moment import Moment

PARTS = ("", "-wal", "-shm")


def with_pipe(path: Path, part: str) -> Path:
    """A database of which one part is a pipe."""
    if part:
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("CREATE TABLE any (one)")
    os.mkfifo(f"{path}{part}")
    return path


@pytest.mark.parametrize("part", PARTS)
def test_who_goes_on_without_what_is_damaged_is_told_and_nothing_is_kept(tmp_path: Path, part: str) -> None:
    path = with_pipe(tmp_path / "events.db", part)
    with pytest.raises(PulseError, match=f"{path}{part} is no regular file; move it away"):
        set_aside(HomeLayout(tmp_path))
    assert not (tmp_path / "damaged").exists()


@pytest.mark.timeout(120)
@pytest.mark.parametrize("part", PARTS)
def test_who_reads_or_opens_the_log_is_told(tmp_path: Path, part: str) -> None:
    path = with_pipe(tmp_path / "events.db", part)
    with pytest.raises(sqlite3.DatabaseError, match=f"{path}{part} is no regular file; move it away"):
        connect_readonly(path)
    with pytest.raises(Damaged, match="is no regular file"):
        refuse_damage(path)
    with pytest.raises(Damaged, match="is no regular file"):
        open_writer(path, Opening())


@pytest.mark.parametrize("leads_to", ["nowhere", "rows"])
def test_a_link_in_the_place_of_a_wal_is_told(tmp_path: Path, leads_to: str) -> None:
    """SQLite follows none there, and its own words are those of a full disk."""
    path = tmp_path / "events.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE any (one)")
    (tmp_path / "rows").write_bytes(b"")
    Path(f"{path}-wal").symlink_to(tmp_path / leads_to)
    with pytest.raises(sqlite3.DatabaseError, match=r"events\.db-wal is a link; put what it leads to there"):
        connect_readonly(path)
    with pytest.raises(Damaged, match=r"events\.db-wal is a link"):
        open_writer(path, Opening())


@pytest.mark.timeout(120)
def test_other_files_of_a_home_hang_nobody_either(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    home = HomeLayout(tmp_path)
    home.run.mkdir()
    for path in (home.path / LAST_BACKUP, home.lock, home.daemon_log):
        os.mkfifo(path)
    assert last_backup(home) is None
    (found,) = LockChecks(home, lambda: False, nullcontext).locks()
    assert (found.level, found.words) == (FAIL, f"{home.lock} is no plain file")
    with DaemonProcess(home, str, print)._log() as log:
        log.write(b"it goes on")
    assert "daemon.log is no plain file" in capsys.readouterr().out
    with pytest.raises(OSError, match="daemon"):
        PrivateFileHandler(home.daemon_log, logging.Formatter())


@pytest.mark.timeout(120)
@pytest.mark.parametrize("part", PARTS)
async def test_vitals_and_checkpoints_are_begun_anew(
    tmp_path: Path, part: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = with_pipe(tmp_path / "vitals.db", part)
    async with SqliteVitals.open(path) as vitals:
        assert "is no regular file; move it away): it was set aside" in vitals.set_aside
    assert path.is_file()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("pulse_adapters.sqlite.vitals_file.why_no_new_file", lambda directory: "no inode")
    path.unlink()
    path.mkdir()
    async with SqliteVitals.open(path) as vitals:
        assert "samples are kept in memory" in vitals.set_aside
    assert not list(tmp_path.glob(":memory:*"))
    os.mkfifo(tmp_path / "state.db")
    checkpoint = Checkpoint(1, Head(), "{}")
    assert read_checkpoints(tmp_path / "state.db") == {}
    await SqliteCheckpoints(tmp_path / "state.db").save({"effects": checkpoint})
    assert read_checkpoints(tmp_path / "state.db") == {"effects": checkpoint}


@pytest.mark.parametrize("way", ["a folder, and a file of that name", "a folder of that name", "immutable"])
async def test_vitals_that_can_be_neither_used_nor_set_aside_are_left_and_kept_in_memory(
    tmp_path: Path, way: str
) -> None:
    path, aside = tmp_path / "vitals.db", tmp_path / "vitals.db.unusable"
    if way == "a folder, and a file of that name":
        path.mkdir()
        aside.touch()
    else:
        path.write_bytes(b"no database" * 500)
    if way == "a folder of that name":
        (aside / "full").mkdir(parents=True)
    if way == "immutable" and subprocess.run(["chattr", "+i", path], check=False, timeout=60).returncode:
        pytest.skip("no file can be made immutable here")
    try:
        async with SqliteVitals.open(path) as vitals:
            assert "samples are kept in memory" in vitals.set_aside
            assert "it was set aside" not in vitals.set_aside
            vitals.sample("cpu", Moment(1, "boot", 1), {"value": 1})
            assert len(await vitals.recent(0)) == 1
        assert path.is_dir() or path.read_bytes().startswith(b"no database")
    finally:
        if way == "immutable":
            subprocess.run(["chattr", "-i", path], check=True, timeout=60)


def test_two_slashes_at_the_beginning_of_a_path_name_no_host(tmp_path: Path) -> None:
    path = Path(f"/{tmp_path}/events.db")
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE any (one)")
    with closing(connect_readonly(path)) as connection:
        assert connection.execute("SELECT * FROM any").fetchall() == []
