"""The log is deleted, replaced, cut or altered under its writer, or gone at the next start: nothing is lost unsaid."""

import asyncio
import errno
import os
import shutil
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager, closing, contextmanager, suppress
from pathlib import Path

import aiosqlite
import pytest

from pulse_adapters.config.home import Home
from pulse_adapters.host.clock import SystemClock
from pulse_adapters.ipc.lock import HomeLock
from pulse_adapters.objects.files import FileObjects
from pulse_adapters.sqlite import commits, wal_watch
from pulse_adapters.sqlite.backup.saved_log import is_all_saved, put_back
from pulse_adapters.sqlite.backup.store import HomeBackups
from pulse_adapters.sqlite.checkpoints import SqliteCheckpoints
from pulse_adapters.sqlite.commits import LOOK_INTERVAL
from pulse_adapters.sqlite.connect import connect_readonly
from pulse_adapters.sqlite.damage import accept_damage
from pulse_adapters.sqlite.event_reader import SqliteEventReader
from pulse_adapters.sqlite.events import SqliteEventLog
from pulse_adapters.sqlite.last_write import last_row_noted, note_boot
from pulse_adapters.sqlite.log_files import LogFiles, save_rows
from pulse_adapters.sqlite.open_log import Opening
from pulse_adapters.sqlite.verify import verify
from pulse_adapters.sqlite.wal import FRAME, HEADER
from pulse_adapters.sqlite.wal_watch import OwnIndex, WalWatch
from pulse_core import __version__
from pulse_core.home import HomeLayout
from pulse_core.model.errors import Damaged, LogGone, PulseError
from pulse_core.model.event import Draft, Event
from pulse_core.model.kinds import DamageAccepted, Paused
from tests.dead_mount import dead
from tests.small_disk import small_disk

Open = Callable[..., AbstractAsyncContextManager[SqliteEventLog]]


def delete(path: Path) -> None:
    path.unlink()


def replace(path: Path) -> None:
    shutil.copy(path, path.with_name("copy"))
    path.with_name("copy").replace(path)


def cut(path: Path) -> None:
    path.write_bytes(b"")


def halve(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def alter(path: Path) -> None:
    write_at(path, 100, bytes(5_000))


def alter_header(path: Path) -> None:
    write_at(path, 8, b"\1")


def write_at(path: Path, place: int, content: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(place)
        file.write(content)


def move_away(path: Path) -> None:
    path.rename(path.with_name("elsewhere"))


def delete_home(path: Path) -> None:
    shutil.rmtree(path.parent)


@pytest.fixture
def home(tmp_path: Path) -> HomeLayout:
    return HomeLayout(tmp_path)


def look_never(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if all that is tried happened while one commit was being written."""
    monkeypatch.setattr(commits, "LOOK_INTERVAL", float("inf"))
    monkeypatch.setattr(LogFiles, "is_wal_shorter", lambda files: False)


def numbered(*numbers: int) -> Sequence[Draft]:
    return [Draft(Paused(why=f"{number}")) for number in numbers]


def link_to_itself(path: Path) -> None:
    path.unlink()
    path.symlink_to(path.name)


def link_to_nothing(path: Path) -> None:
    path.unlink()
    path.symlink_to("/nonexistent/file")


def pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


async def whys(log: SqliteEventLog) -> list[str]:
    return [event.spelled()["data"].get("why") async for batch in log.since(0) for event in batch]


@pytest.mark.parametrize(
    ("change", "name"),
    [
        (delete, "events.db"),
        (delete, "events.db-wal"),
        (replace, "events.db"),
        (replace, "events.db-wal"),
        (move_away, "events.db"),
        (cut, "events.db"),
        (cut, "events.db-wal"),
        (halve, "events.db-wal"),
        (delete_home, "events.db"),
        (link_to_itself, "events.db"),
        (link_to_itself, "events.db-wal"),
        (link_to_nothing, "events.db-wal"),
        (pipe, "events.db"),
        (pipe, "events.db-wal"),
    ],
)
async def test_a_log_that_is_gone_acknowledges_nothing_and_its_rows_are_saved_and_put_back(
    home: HomeLayout, open_log: Open, change: Callable[[Path], None], name: str
) -> None:
    told: list[Event] = []
    async with open_log() as log:
        await log.append(*numbered(1, 2, 3))
        log.listen(told.extend)
        change(home.path / name)
        await asyncio.sleep(LOOK_INTERVAL)
        with pytest.raises(LogGone):
            await log.append(*numbered(4))
        with pytest.raises(LogGone, match=r"rows are saved in .*doctor --repair"):
            await log.check()
        with pytest.raises(LogGone, match="are saved"):
            await log.append(*numbered(5))
    assert not told
    assert home.saved_log.stat().st_mode & 0o777 == 0o600
    for use in (open_log, lambda: SqliteEventReader(home.path)):
        with pytest.raises(Damaged, match="upulse doctor --repair"):
            await asyncio.to_thread(use) if use is not open_log else await opened(open_log)
    assert "doctor --repair" in verify(home.events, home.objects).fault
    assert "is there again" in put_back(home)
    async with open_log() as log:
        assert (await whys(log))[:3] == ["1", "2", "3"]
        await log.append(*numbered(6))
    assert verify(home.events, home.objects).fault == ""
    assert not home.saved_log.exists()


@pytest.mark.parametrize("way", ["at a look", "before a commit"])
async def test_an_older_copy_written_into_the_log_has_it_read_again_and_its_own_writes_do_not(
    home: HomeLayout, open_log: Open, way: str
) -> None:
    async with open_log() as log:
        await log.append(*numbered(1))
    older = home.events.read_bytes()
    async with open_log() as log:
        await log.append(*[Draft(Paused(why="x" * 1_000))] * 4_000)
        await log.check()
        assert home.events.stat().st_size > 2 * len(older)  # a checkpoint has written it
        assert not log.written_by_others.is_set()
        write_at(home.events, 0, older)
        with suppress(PulseError):  # SQLite may find it, too
            await (log.check() if way == "at a look" else log.append(*numbered(2)))
        assert log.written_by_others.is_set()
        log.written_by_others.clear()
        await log.check()
        assert not log.written_by_others.is_set()


async def test_what_could_not_be_recorded_since_is_left_beside_what_was_saved(
    home: HomeLayout, open_log: Open
) -> None:
    async with open_log() as log:
        recorded = await log.append(*numbered(1, 2))
        await log.keep(*numbered(9))  # nothing is gone
        home.events.unlink()
        with pytest.raises(LogGone):
            await log.check()
        await log.keep(Draft(Paused(why="2"), id=recorded[1].id), *numbered(3, 4))
    put_back(home)
    async with open_log() as log:
        assert await whys(log) == ["1", "2", "3", "4"]
    assert verify(home.events, home.objects).fault == ""


async def test_saved_rows_that_vanish_are_saved_again_or_said_to_be_lost(
    home: HomeLayout, open_log: Open, caplog: pytest.LogCaptureFixture
) -> None:
    for spoil in (Path.unlink, cut):
        async with open_log() as log:
            await log.append(*numbered(1, 2))
            for path in home.path.glob("events.db*"):
                path.unlink()
            for _ in range(2):
                with pytest.raises(LogGone, match="its 2 rows are saved"):
                    await log.check()
                with closing(connect_readonly(home.saved_log)) as saved:
                    assert saved.execute("SELECT count(*) FROM event").fetchone() == (2,)
                spoil(home.saved_log)
            assert await log.keep(*numbered(3))
            spoil(home.saved_log)
        assert "is there again, with 2 rows" in put_back(home)
        home.events.unlink()
    assert "LOST" not in caplog.text
    async with open_log() as log:
        await log.append(*numbered(1, 2))
        home.events.unlink()
        with pytest.raises(LogGone):
            await log.check()
        home.saved_log.unlink()
        home.saved_log.mkdir()  # in the way of a file
        with pytest.raises(LogGone, match="could not be saved"):
            await log.check()
        assert not await log.keep(*numbered(3))
    assert "its 2 rows are LOST" in caplog.text


@pytest.mark.parametrize("is_table_there", [False, True])
async def test_a_file_without_saved_rows_is_set_aside_and_hinders_no_repair(
    tmp_path: Path, is_table_there: bool
) -> None:
    home = await orphan(tmp_path, 30)
    home.saved_log.touch()
    if is_table_there:
        with closing(sqlite3.connect(home.saved_log)) as empty:
            empty.execute("CREATE TABLE event (seq INTEGER, chain BLOB)")
    assert "with 30 rows" in put_back(home)
    home.saved_log.touch()
    assert "held no row, and is in" in put_back(home)
    assert len(list(home.damaged.glob("*/events.db.saved"))) == 2
    assert verify(home.events, home.objects)[:2] == (30, "")


@pytest.mark.parametrize("is_linked", [False, True])
async def test_a_home_that_was_moved_is_said_to_be_it_loses_nothing_and_may_come_back(
    tmp_path: Path, open_log: Open, is_linked: bool
) -> None:
    home, elsewhere = tmp_path / "home", tmp_path / "elsewhere"
    home.mkdir()
    if is_linked:
        (tmp_path / "events.db").touch()
        (home / "events.db").symlink_to(tmp_path / "events.db")
    async with open_log(home) as log:
        await log.append(*numbered(1))
        home.rename(elsewhere)
        await asyncio.sleep(LOOK_INTERVAL)
        for ask in (log.check, lambda: log.append(*numbered(2))):
            with pytest.raises(LogGone, match=f"was moved to {elsewhere} .*upulse daemon restart --home"):
                await ask()
        assert not home.exists()
        elsewhere.rename(home)
        await log.check()
        await log.append(*numbered(3))
        home.rename(elsewhere)
    assert not home.exists()
    async with open_log(elsewhere) as log:
        assert await whys(log) == ["1", "3"]
    assert verify(elsewhere / "events.db", elsewhere / "objects").fault == ""


async def test_a_log_that_is_back_is_written_again_and_what_was_saved_meanwhile_is_removed(
    home: HomeLayout, open_log: Open
) -> None:
    elsewhere = home.path / "elsewhere"
    async with open_log() as log:
        for number in (1, 2):
            await log.append(*numbered(number))
            home.events.rename(elsewhere)
            with pytest.raises(LogGone, match=f"its {number} rows? (is|are) saved"):
                await log.check()
            elsewhere.rename(home.events)
            await log.check()
            assert not home.saved_log.exists()
            assert log.written_by_others.is_set()  # they are read as a whole again
        await log.append(*numbered(3))
    assert verify(home.events, home.objects)[:2] == (3, "")


async def test_a_log_that_is_back_is_not_written_while_what_was_saved_can_not_be_removed(
    home: HomeLayout, open_log: Open
) -> None:
    elsewhere = home.path / "elsewhere"
    async with open_log() as log:
        await log.append(*numbered(1))
        home.events.rename(elsewhere)
        with pytest.raises(LogGone, match="its 1 row is saved"):
            await log.check()
        home.saved_log.unlink()
        home.saved_log.mkdir()  # the next start would refuse the log because of it
        elsewhere.rename(home.events)
        for ask in (log.check, lambda: log.append(*numbered(2))):
            with pytest.raises(LogGone):
                await ask()
        home.saved_log.rmdir()
        await log.check()
        await log.append(*numbered(3))
    assert verify(home.events, home.objects)[:2] == (2, "")


@pytest.mark.parametrize("is_linked", [False, True])
async def test_nothing_is_saved_in_what_is_laid_over_a_home_whose_log_is_whole(
    tmp_path: Path, open_log: Open, is_linked: bool
) -> None:
    home, over = tmp_path / "home", tmp_path / "over"
    (tmp_path / "real" if is_linked else home).mkdir()
    if is_linked:
        home.symlink_to("real")
    async with open_log(home) as log:
        await log.append(*numbered(1))
        with small_disk(home, "1m"):
            for _ in range(2):
                with pytest.raises(
                    LogGone, match=f"something was mounted over {home} .*there is gone.*nothing is lost"
                ):
                    await log.check()
            assert list(home.iterdir()) == []
        await log.check()
        await log.append(*numbered(2))
        (home / "events.db").rename(over)
        with small_disk(home, "1m"):
            with pytest.raises(LogGone, match="could not be saved"):
                await log.check()
            assert list(home.iterdir()) == []
        with pytest.raises(LogGone, match="its 2 rows are saved"):
            await log.check()


@pytest.mark.parametrize("files", [["events.db"], ["events.db", "events.db-wal"]])
async def test_a_log_that_was_moved_without_its_wal_or_its_home_is_saved(
    tmp_path: Path, open_log: Open, files: list[str]
) -> None:
    (tmp_path / "elsewhere").mkdir()
    async with open_log() as log:
        await log.append(*numbered(1))
        for file in files:
            (tmp_path / file).rename(tmp_path / "elsewhere" / file)
        with pytest.raises(LogGone, match="its 1 row is saved"):
            await log.check()


async def opened(open_log: Open, **how: object) -> None:
    async with open_log(**how):
        pass


async def test_it_is_noticed_without_an_append_and_at_the_stop(home: HomeLayout, open_log: Open) -> None:
    async with open_log() as log:
        await log.append(*numbered(1))
        await log.check()
        home.events.unlink()
        with pytest.raises(LogGone, match=r"was deleted or moved away.*its 1 row is saved"):
            await log.check()
    for path in home.path.glob("events.db*"):
        path.unlink()
    async with open_log() as log:
        await log.append(*numbered(1, 2))
        home.events.unlink()
    with closing(connect_readonly(home.saved_log)) as saved:
        assert saved.execute("SELECT count(*) FROM event").fetchone() == (2,)


async def test_a_disk_that_does_not_answer_what_is_asked_of_the_files_holds_up_nobody_else(
    home: HomeLayout, open_log: Open
) -> None:
    async with open_log() as log:
        await log.append(*numbered(1))
        await asyncio.sleep(LOOK_INTERVAL)
        with dead(home.path) as fail:
            watchdog = threading.Timer(30, fail)
            watchdog.start()
            tasks = [asyncio.ensure_future(log.check()), asyncio.ensure_future(log.append(*numbered(2)))]
            await asyncio.wait(tasks, timeout=0.2)
            has_waited = not watchdog.is_alive()
            watchdog.cancel()
            fail()
            with suppress(PulseError):
                await asyncio.gather(*tasks)
        await log.check()
        await log.append(*numbered(3))
        assert {"1", "3"} <= set(await whys(log))
    assert not has_waited


async def test_a_commit_while_the_length_of_the_wal_is_looked_at_is_not_taken_for_a_cut(
    open_log: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commits, "LOOK_INTERVAL", 3_600)  # no commit waits for that look
    has_read, is_committed = threading.Event(), threading.Event()

    def pread(file: int, most: int, place: int, reads: Callable[..., bytes] = os.pread) -> bytes:
        read = reads(file, most, place)
        if (most, place) == (HEADER, 0) and not has_read.is_set():
            has_read.set()
            is_committed.wait(30)
        return read

    async with open_log() as log:
        await log.append(*numbered(1))
        await log.check()
        monkeypatch.setattr(os, "pread", pread)
        looking = asyncio.ensure_future(log.check())
        await asyncio.to_thread(has_read.wait, 30)
        await log.append(*numbered(2))
        is_committed.set()
        await looking
        assert await whys(log) == ["1", "2"]


async def test_frames_are_looked_at_by_one_at_a_time(open_log: Open) -> None:
    """As at the stop, where the thread of a look that was cancelled may still be at it."""
    async with open_log() as log:
        for number in range(20):
            await log.append(*numbered(number))
            await asyncio.gather(*(log.check() for _ in range(4)))


async def test_a_server_that_fails_as_the_files_are_closed_ends_no_check(
    open_log: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    failed = list[str]()

    def close(file: int, closes: Callable[[int], None] = os.close) -> None:
        path = os.readlink(f"/proc/self/fd/{file}")
        closes(file)
        if "events.db" in path:  # what is collected meanwhile is closed, too
            failed.append(path)
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    async with open_log() as log:
        await log.append(*numbered(1))
        with monkeypatch.context() as failing:
            failing.setattr(os, "close", close)
            await log.check()
            await log.append(*numbered(2))
        assert failed
        await log.check()
        assert await whys(log) == ["1", "2"]


@pytest.mark.parametrize("code", [errno.EIO, errno.ESTALE, errno.ENOMEM, errno.EACCES])
async def test_a_log_that_cannot_be_seen_just_now_is_written_on(
    open_log: Open, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    def fail(path: object, **_: object) -> None:
        raise OSError(code, os.strerror(code), path)

    async with open_log() as log:
        await log.append(*numbered(1))
        await asyncio.sleep(LOOK_INTERVAL)
        with monkeypatch.context() as blind:
            for name in ("stat", "lstat"):
                blind.setattr(os, name, fail)
            await log.append(*numbered(2))
        await log.check()
        assert await whys(log) == ["1", "2"]


async def test_a_wal_that_somebody_had_moved_into_the_database_is_no_alarm(
    home: HomeLayout, open_log: Open
) -> None:
    async with open_log() as log:
        await log.append(*numbered(1))
        await log.check()
        with closing(sqlite3.connect(home.events)) as other:
            other.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        assert (home.path / "events.db-wal").stat().st_size == 0
        await log.check()
        await log.append(*numbered(2))
        assert await whys(log) == ["1", "2"]


async def test_a_wal_that_was_emptied_under_the_writer_is_damage_at_the_next_start(
    tmp_path: Path, home: HomeLayout, open_log: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    look_never(monkeypatch)
    killed = tmp_path / "killed"
    killed.mkdir()
    async with open_log() as log:
        await log.append(*numbered(1))
        (home.path / "events.db-wal").write_bytes(b"")
        await log.append(*numbered(2))
        for name in ("events.db", "events.db-wal", "events.db-shm"):
            shutil.copy(home.path / name, killed)
    with pytest.raises(Damaged, match="-wal was emptied"):
        await opened(lambda: open_log(killed))


async def test_a_wal_that_was_deleted_with_its_index_after_a_kill_is_said_and_a_checkpoint_by_others_is_no_loss(
    home: HomeLayout, open_log: Open, tmp_path: Path
) -> None:
    killed, names = tmp_path / "killed", ("events.db-wal", "events.db-shm")
    killed.mkdir()
    async with open_log() as log:
        await log.append(*numbered(1))
    async with open_log() as log:
        await log.append(*numbered(2, 3))
        for name in ("events.db", *names):
            shutil.copy(home.path / name, killed)
    os.truncate(home.events, 0)  # as the daemon that was killed left them
    write_at(home.events, 0, (killed / "events.db").read_bytes())
    with pytest.raises(Damaged, match="ends at row 1, and had 3 rows: the 2 after it are LOST"):
        await opened(open_log)
    assert "the log once had 3 rows" in verify(home.events, home.objects).fault
    for name in names:
        shutil.copy(killed / name, home.path)
    with closing(sqlite3.connect(home.events)) as other:
        other.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    assert not (home.path / names[0]).exists()
    await opened(open_log)
    assert verify(home.events, home.objects)[:2] == (3, "")
    note_boot(home.events, 3)  # as a start that is killed before it notes a row
    assert last_row_noted(home.events) == 3
    os.truncate(home.events, 0)
    write_at(home.events, 0, (killed / "events.db").read_bytes())
    await opened(open_log, how=Opening(accept_damage=True))
    await opened(open_log)


@pytest.mark.parametrize("is_empty", [False, True])
@pytest.mark.parametrize("witness", ["note", "state"])
async def test_no_new_log_is_begun_where_something_knows_of_one(
    home: HomeLayout, open_log: Open, witness: str, is_empty: bool
) -> None:
    async with open_log() as log:
        await log.append(*numbered(1, 2))
        if witness == "state":
            await SqliteCheckpoints(home.state, log.host).tell_host()
    for file in home.path.glob("events.db*"):
        if witness == "state" or not file.name.endswith("-boot"):
            file.unlink()
    if is_empty:
        home.events.touch()
    before = sorted(file.name for file in home.path.iterdir())
    words = "had 2 rows, which are LOST" if witness == "note" else "this home had one"
    with pytest.raises(Damaged, match=words):
        await opened(open_log)
    assert sorted(file.name for file in home.path.iterdir()) == before
    await opened(open_log, how=Opening(accept_damage=True))
    await opened(open_log)


async def test_a_wal_that_was_cut_and_filled_up_before_a_look_is_noticed(
    home: HomeLayout, open_log: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_log() as log:
        await log.append(*numbered(1, 2, 3))
        await log.check()
        look_never(monkeypatch)
        cut(home.path / "events.db-wal")
        await log.append(*numbered(4))
        with pytest.raises(LogGone, match=r"-wal was cut short .* its 4 rows are saved"):
            await log.check()


@pytest.mark.parametrize("change", [alter, alter_header])
async def test_a_wal_that_is_altered_is_noticed_before_and_after_it_was_looked_at_and_loses_nothing(
    home: HomeLayout, open_log: Open, change: Callable[[Path], None]
) -> None:
    wal = home.path / "events.db-wal"
    for looks in (0, 1, 2):
        async with open_log() as log:
            first = log.head.seq
            await log.append(*numbered(*range(first, first + 100)))
            for _ in range(looks):
                await log.check()
            change(wal)
            with pytest.raises(LogGone, match=rf"-wal was altered .* its {first + 100} rows are saved"):
                await log.check()
            with pytest.raises(LogGone):
                await log.append(*numbered(0))
        assert is_all_saved(home)
        put_back(home)
        assert verify(home.events, home.objects)[:2] == (first + 100, "")


async def test_what_another_one_has_put_there_is_not_all_saved(home: HomeLayout, open_log: Open) -> None:
    wal = home.path / "events.db-wal"
    for name in ("another", "the same, gone on"):
        async with open_log() as log:
            await log.append(*numbered(1, 2))
            alter(wal)
            with pytest.raises(LogGone):
                await log.check()
        saved = home.saved_log.rename(home.path / "kept")
        if name == "another":
            for path in home.path.glob("events.db*"):
                path.unlink()
        else:
            shutil.copyfile(saved, home.events)
            wal.unlink(missing_ok=True)
        async with open_log() as log:
            await log.append(*numbered(1))
        saved.rename(home.saved_log)
        assert not is_all_saved(home), name
        home.saved_log.unlink()


@pytest.mark.parametrize("is_killed", [False, True], ids=["checkpointed", "killed"])
async def test_what_lies_there_and_goes_on_after_the_saved_rows_stays_the_log(
    home: HomeLayout, open_log: Open, is_killed: bool
) -> None:
    async with open_log() as log:
        await log.append(*numbered(1, 2))
        await log.check()
    shutil.copyfile(home.events, home.saved_log.with_name("kept"))
    async with open_log() as log:
        await log.append(*numbered(3, 4, 5))
        if is_killed:
            for path in (home.events, home.path / "events.db-wal"):
                shutil.copyfile(path, path.with_name(f"{path.name}.killed"))
    if is_killed:
        for path in home.path.glob("*.killed"):
            path.rename(path.with_suffix(""))
    (home.path / "kept").rename(home.saved_log)
    assert "it holds all 2 rows of events.db.saved, now in" in (said := put_back(home))
    assert "and 3 more" in said
    assert (home.damaged / "1" / "events.db.saved").exists()
    assert verify(home.events, home.objects)[:2] == (5, "")


@pytest.mark.parametrize(("is_damaged", "words"), [(False, "from row 3 on"), (True, "and is damaged")])
async def test_no_row_leaves_the_log_while_others_are_put_back(
    home: HomeLayout, open_log: Open, is_damaged: bool, words: str
) -> None:
    async with open_log() as log:
        await log.append(*numbered(1, 2))
    shutil.copyfile(home.events, home.path / "kept")
    async with open_log() as log:
        await log.append(*numbered(3))
    home.events.replace(home.path / "other")
    (home.path / "kept").rename(home.events)
    if is_damaged:
        shutil.copyfile(home.events, home.path / "other")
    async with open_log() as log:
        await log.append(*numbered(4, 5))
    if is_damaged:
        with closing(sqlite3.connect(home.events)) as written, written:
            written.execute("DROP TRIGGER event_never_changes")
            written.execute("UPDATE event SET subject = 'other' WHERE seq = 4")
    (home.path / "other").rename(home.saved_log)
    before = home.events.read_bytes(), home.saved_log.read_bytes()
    with pytest.raises(PulseError, match=f"2 rows .*{words}.*nothing was changed"):
        put_back(home)
    assert (home.events.read_bytes(), home.saved_log.read_bytes()) == before


async def test_a_wal_that_is_altered_is_noticed_at_the_stop_and_by_a_check_from_elsewhere(
    home: HomeLayout, open_log: Open
) -> None:
    code = "import sys; from pathlib import Path; from pulse_adapters.sqlite.verify import verify; p = Path(sys.argv[1])"
    code = f"{code}; print(verify(p, p.with_name('objects')).fault)"

    async def verified() -> str:
        there = await asyncio.create_subprocess_exec(
            sys.executable, "-c", code, str(home.events), stdout=subprocess.PIPE
        )
        return (await there.communicate())[0].decode().strip()

    async with open_log() as log:
        await log.append(*numbered(1, 2))
        assert await verified() == ""
        alter(home.path / "events.db-wal")
        assert "frame 1 " in (said := await verified())
        assert "don't kill it" in said
    assert "its rows in" in verify(home.events, home.objects).fault
    put_back(home)
    assert verify(home.events, home.objects)[:2] == (2, "")


async def test_the_end_of_a_wal_counts_and_one_begun_anew_is_no_alarm(
    home: HomeLayout, open_log: Open
) -> None:
    wal = home.path / "events.db-wal"
    async with open_log() as log:
        for number in range(3):
            await log.append(*numbered(*range(50)))
            await log.check()
            with closing(sqlite3.connect(home.events)) as other:
                other.execute(f"PRAGMA wal_checkpoint({('RESTART', 'TRUNCATE', 'PASSIVE')[number]})")
            await log.check()
        await log.append(*numbered(1))
        index = OwnIndex(home.path / "events.db-shm")()
        assert index
        write_at(wal, HEADER + index.frames * (FRAME + 4096) - 1, b"\1")
        with pytest.raises(LogGone, match="was altered"):
            await log.check()


async def test_an_alteration_is_noticed_though_the_time_of_the_file_was_put_back(
    home: HomeLayout, open_log: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    wal = home.path / "events.db-wal"
    monkeypatch.setattr(wal_watch, "_SETTLED_NS", 50_000_000)
    async with open_log() as log:
        await log.append(*numbered(1, 2, 3))
        watch = WalWatch(wal, OwnIndex(home.path / "events.db-shm"))
        async with asyncio.timeout(60):
            while not watch.is_as_found():
                assert not watch.fault()
                await asyncio.sleep(0.01)
        before = wal.stat()
        alter(wal)
        os.utime(wal, ns=(before.st_atime_ns, before.st_mtime_ns))
        assert not watch.is_as_found()
        assert "frame 1 " in watch.fault()
        with pytest.raises(LogGone, match="was altered"):
            await log.check()


async def test_pages_that_were_altered_are_not_saved_as_they_are(home: HomeLayout, open_log: Open) -> None:
    wal = home.path / "events.db-wal"
    async with open_log() as log:
        await log.append(*numbered(*range(300)))
        with closing(sqlite3.connect(home.events)) as other:
            other.execute("PRAGMA wal_checkpoint(PASSIVE)")
        await log.append(*numbered(*range(300)))
        wal.write_bytes(wal.read_bytes().replace(b'"why":"150"', b'"why":"051"'))
        async with aiosqlite.connect(home.events) as without_memory:
            assert await save_rows(without_memory, home.saved_log, home.events) == 450
        assert verify(home.saved_log, home.objects)[:2] == (450, "")


@pytest.mark.parametrize("change", [cut, halve])
async def test_a_wal_that_was_cut_between_two_commits_is_noticed_before_it_is_filled_up(
    home: HomeLayout, open_log: Open, monkeypatch: pytest.MonkeyPatch, change: Callable[[Path], None]
) -> None:
    async with open_log() as log:
        await log.append(*numbered(1, 2, 3))
        monkeypatch.setattr(commits, "LOOK_INTERVAL", float("inf"))
        await log.append(*numbered(4))
        change(home.path / "events.db-wal")
        with pytest.raises(LogGone, match="-wal was cut short"):
            await log.append(*numbered(5))


async def test_of_a_wal_that_was_cut_what_was_moved_before_is_saved(home: HomeLayout, open_log: Open) -> None:
    async with open_log() as log:
        await log.append(*numbered(*range(300)))
        with closing(sqlite3.connect(home.events)) as other:
            other.execute("PRAGMA wal_checkpoint(PASSIVE)")
        await log.append(*numbered(*range(300)))
        cut(home.path / "events.db-wal")
        async with aiosqlite.connect(home.events) as without_memory:
            assert await save_rows(without_memory, home.saved_log, home.events) == 300
        assert verify(home.saved_log, home.objects)[:2] == (300, "")


async def test_rows_that_can_not_be_saved_now_are_saved_later(home: HomeLayout, open_log: Open) -> None:
    async with open_log() as log:
        await log.append(*numbered(1))
        home.saved_log.with_name("events.db.saved.unfinished").mkdir()  # nothing can be written there
        home.events.unlink()
        with pytest.raises(LogGone, match=r"could not be saved .*don't stop the daemon"):
            await log.check()
        home.saved_log.with_name("events.db.saved.unfinished").rmdir()
        with pytest.raises(LogGone, match="its 1 row is saved"):
            await log.check()


# A -wal without its database


@contextmanager
def exclusive(home: Home):  # type: ignore[no-untyped-def]
    with HomeLock(home.lock, __version__):
        yield


async def orphan(tmp_path: Path, rows: int, checkpoint: bool = False, backup_at: int = 0) -> Home:
    """A home whose daemon was killed and whose events.db was deleted; its -wal has what was not moved yet."""
    there, home = Home(tmp_path / "there"), Home(tmp_path / "home")
    there.create()
    home.create()
    backups = HomeBackups(there, SystemClock(), FileObjects(there.objects), lambda: exclusive(there))
    objects = FileObjects(there.objects)
    async with SqliteEventLog.open(there.events, clock=SystemClock(), objects=objects) as log:
        for number in range(1, rows + 1):
            await log.append(*numbered(number))
            if number == backup_at:
                await asyncio.to_thread(backups.make, str(tmp_path / "backup"), lambda words: None)
            if checkpoint and number == rows // 2:
                with closing(sqlite3.connect(there.events)) as other:
                    other.execute("PRAGMA wal_checkpoint(RESTART)")
        for name in ("events.db-wal", "events.db-shm"):
            shutil.copy(there.path / name, home.path)
    return home


async def test_nothing_makes_a_new_log_over_a_wal_and_a_young_one_is_made_of_it(tmp_path: Path) -> None:
    home = await orphan(tmp_path, 30)
    wal = home.path / "events.db-wal"
    before = wal.read_bytes()

    async def use() -> None:
        objects = FileObjects(home.objects)
        async with SqliteEventLog.open(home.events, clock=SystemClock(), objects=objects):
            pass

    backups = HomeBackups(home, SystemClock(), FileObjects(home.objects), lambda: exclusive(home))
    for refused in (
        lambda: asyncio.run(use()),
        lambda: SqliteEventReader(home.path),
        lambda: backups.make(str(tmp_path / "b"), lambda words: None),
    ):
        with pytest.raises(Damaged, match=r"acknowledged rows.*doctor --repair.*restore.*--accept-damage"):
            await asyncio.to_thread(refused)
    assert "acknowledged rows" in verify(home.events, home.objects).fault
    assert wal.read_bytes() == before
    assert not home.events.exists()
    assert "with 30 rows" in put_back(home)
    assert verify(home.events, home.objects)[:2] == (30, "")


async def test_a_wal_that_holds_only_the_end_is_left_as_it_is(tmp_path: Path) -> None:
    home = await orphan(tmp_path, 60, checkpoint=True)
    with pytest.raises(PulseError, match="upulse restore"):
        put_back(home)
    assert sorted(path.name for path in home.path.glob("events.db*")) == ["events.db-shm", "events.db-wal"]


@pytest.mark.parametrize(("rows", "lost"), [(120, False), (600, True)], ids=["whole", "begun anew"])
async def test_a_restore_carries_over_what_the_wal_holds_or_says_what_is_lost(
    tmp_path: Path, rows: int, lost: bool
) -> None:
    home = await orphan(tmp_path, rows, checkpoint=lost, backup_at=40)
    backups = HomeBackups(home, SystemClock(), FileObjects(home.objects), lambda: exclusive(home))
    restored, _ = await asyncio.to_thread(
        backups.restore, str(tmp_path / "backup"), True, lambda: "", lambda words: None
    )
    assert restored.rows == 40
    assert (Path(restored.kept_at) / "events.db-wal").exists()
    if lost:
        assert restored.lost + restored.salvaged == rows - 40
        assert restored.lost
        assert restored.fault
    else:
        assert (restored.salvaged, restored.lost) == (rows - 40, 0)
    assert verify(home.events, home.objects)[:2] == (40 + restored.salvaged + 1, "")


async def test_a_restore_takes_the_saved_rows(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    home.create()
    backups = HomeBackups(home, SystemClock(), FileObjects(home.objects), lambda: exclusive(home))
    objects = FileObjects(home.objects)
    async with SqliteEventLog.open(home.events, clock=SystemClock(), objects=objects) as log:
        await log.append(*numbered(1))
        await asyncio.to_thread(backups.make, str(tmp_path / "backup"), lambda words: None)
        await log.append(*numbered(2, 3))
        home.events.unlink()
    restored, _ = await asyncio.to_thread(
        backups.restore, str(tmp_path / "backup"), True, lambda: "", lambda words: None
    )
    assert (restored.rows, restored.salvaged, restored.lost, restored.fault) == (1, 2, 0, "")
    assert not home.saved_log.exists()


async def test_who_goes_on_without_it_has_a_copy_and_it_is_recorded(tmp_path: Path) -> None:
    home = await orphan(tmp_path, 30)
    wal = (home.path / "events.db-wal").read_bytes()
    objects = FileObjects(home.objects)
    how, news = await accept_damage(home, Opening(), SystemClock(), objects)
    (told,) = (draft.payload for draft in news)
    assert isinstance(told, DamageAccepted)
    assert "acknowledged rows" in told.what
    assert (Path(told.kept_at) / "events.db-wal").read_bytes() == wal
    async with SqliteEventLog.open(home.events, clock=SystemClock(), objects=objects, how=how) as log:
        assert log.head.seq == 0


def test_an_empty_wal_beside_nothing_is_a_beginning(tmp_path: Path) -> None:
    (tmp_path / "events.db-wal").touch()

    async def use() -> None:
        objects = FileObjects(tmp_path / "objects")
        async with SqliteEventLog.open(tmp_path / "events.db", clock=SystemClock(), objects=objects) as log:
            assert os.path.exists(tmp_path / "events.db")
            assert log.head.seq == 0

    asyncio.run(use())
