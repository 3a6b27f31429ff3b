"""events.db is a link, as to another disk: it is looked at where it lies, and nothing is lost unsaid when it becomes one."""

import asyncio
import os
import re
import shutil
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, closing
from pathlib import Path

import pytest

from pulse_adapters.config.home import Home
from pulse_adapters.host.clock import SystemClock
from pulse_adapters.ipc.lock import HomeLock
from pulse_adapters.objects.files import FileObjects
from pulse_adapters.sqlite.backup.saved_log import is_all_saved, put_back
from pulse_adapters.sqlite.backup.store import HomeBackups
from pulse_adapters.sqlite.commits import LOOK_INTERVAL
from pulse_adapters.sqlite.connect import connect_readonly
from pulse_adapters.sqlite.damage import accept_damage
from pulse_adapters.sqlite.event_reader import SqliteEventReader
from pulse_adapters.sqlite.events import SqliteEventLog
from pulse_adapters.sqlite.open_log import Opening
from pulse_adapters.sqlite.verify import verify
from pulse_core import __version__
from pulse_core.home import HomeLayout
from pulse_core.model.errors import Damaged, LogGone, LogUnavailable
from pulse_core.model.event import Draft
from pulse_core.model.kinds import Paused

Open = Callable[..., AbstractAsyncContextManager[SqliteEventLog]]
KilledWriter = Callable[[Path, int], list[str]]


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """A home whose log is a link to one in another directory, under another name."""
    made = Home(tmp_path / "home")
    made.create()
    (tmp_path / "disk").mkdir()
    (tmp_path / "disk" / "log").touch()
    made.events.symlink_to(tmp_path / "disk" / "log")
    return made


def backups_of(home: Home) -> HomeBackups:
    return HomeBackups(
        home, SystemClock(), FileObjects(home.objects), lambda: HomeLock(home.lock, __version__)
    )


async def refused(home: HomeLayout, open_log: Open) -> str:
    """What reader and writer say; the same of both."""
    said = set()
    with pytest.raises(Damaged) as by_reader:
        SqliteEventReader(home.path)
    with pytest.raises(Damaged) as by_writer:
        async with open_log(home.path):
            pass
    said |= {str(by_reader.value), str(by_writer.value)}
    assert len(said) == 1
    return said.pop()


async def test_an_altered_frame_of_a_linked_log_is_damage(
    home: Home, open_log: Open, killed_writer: KilledWriter
) -> None:
    killed_writer(home.path, 20)
    wal = home.path.parent / "disk" / "log-wal"
    content = bytearray(wal.read_bytes())
    content[len(content) // 2] ^= 1
    wal.write_bytes(content)
    assert "is altered" in await refused(home, open_log)
    assert "is altered" in verify(home.events, home.objects).fault


async def test_a_linked_log_that_was_killed_is_backed_up_and_restored_with_all_its_rows(
    home: Home, killed_writer: KilledWriter
) -> None:
    killed_writer(home.path, 20)
    backups = backups_of(home)
    await asyncio.to_thread(backups.make, str(home.path.parent / "backup"), lambda words: None)
    killed_writer(home.path, 20)
    with closing(connect_readonly(home.events)) as log:
        before = log.execute("SELECT count(*) FROM event").fetchone()[0]
    restored, _ = await asyncio.to_thread(
        backups.restore, str(home.path.parent / "backup"), True, lambda: "", lambda words: None
    )
    assert (restored.rows + restored.salvaged, restored.lost) == (before, 0)
    assert any("was a link" in note for note in restored.notes)
    assert not home.events.is_symlink()
    assert os.readlink(Path(restored.kept_at) / "events.db") == str(home.path.parent / "disk" / "log")
    assert (home.path.parent / "disk" / "log-wal").exists()
    assert verify(home.events, home.objects).fault == ""


@pytest.mark.parametrize("of", ["the log", "its -wal"])
async def test_a_log_that_is_replaced_by_a_link_to_itself_is_said_to_be_and_its_rows_are_saved(
    tmp_path: Path, open_log: Open, of: str
) -> None:
    home = HomeLayout(tmp_path)
    async with open_log() as log:
        await log.append(*[Draft(Paused(why="before"))] * 3)
        moved = home.events if of == "the log" else tmp_path / "events.db-wal"
        moved.rename(tmp_path / "moved")
        moved.symlink_to("moved")
        await asyncio.sleep(LOOK_INTERVAL)
        if of == "its -wal":
            await log.append(Draft(Paused(why="after")))  # whoever follows the link finds it
        else:
            with pytest.raises(LogGone, match=r"was replaced by a link to .*moved"):
                await log.append(Draft(Paused(why="after")))
            with pytest.raises(LogGone, match="its 3 rows are saved"):
                await log.check()
    if of == "the log":
        assert is_all_saved(home)
        put_back(home)
        assert not home.events.is_symlink()
    assert verify(home.events, home.objects)[:2] == (3 + (of != "the log"), "")


async def moved_after_a_kill(tmp_path: Path, killed_writer: KilledWriter) -> tuple[Home, int]:
    """A home whose log was moved and linked, but not its -wal; how many rows it had."""
    home = Home(tmp_path / "home")
    home.create()
    killed_writer(home.path, 20)
    await asyncio.to_thread(backups_of(home).make, str(tmp_path / "backup"), lambda words: None)
    killed_writer(home.path, 20)
    with closing(connect_readonly(home.events)) as log:
        rows = log.execute("SELECT count(*) FROM event").fetchone()[0]
    home.events.rename(tmp_path / "log")
    home.events.symlink_to(tmp_path / "log")
    return home, rows


async def test_a_wal_that_was_left_beside_the_link_is_said_and_counts_where_it_belongs(
    tmp_path: Path, open_log: Open, killed_writer: KilledWriter
) -> None:
    home, rows = await moved_after_a_kill(tmp_path, killed_writer)
    words = await refused(home, open_log)
    left, right = home.path / "events.db-wal", tmp_path / "log-wal"
    assert f"{left} lies beside the link" in words
    assert f"move it to {right}" in words
    left.rename(right)
    assert verify(home.events, home.objects)[:2] == (rows, "")


async def test_a_restore_carries_over_the_rows_that_were_left_beside_the_link(
    tmp_path: Path, killed_writer: KilledWriter
) -> None:
    home, rows = await moved_after_a_kill(tmp_path, killed_writer)
    restored, _ = await asyncio.to_thread(
        backups_of(home).restore, str(tmp_path / "backup"), True, lambda: "", lambda words: None
    )
    assert (restored.rows + restored.salvaged, restored.lost) == (rows, 0)
    assert (Path(restored.kept_at) / "events.db-wal").exists()


async def test_who_goes_on_without_what_was_left_beside_the_link_has_it_kept(
    tmp_path: Path, killed_writer: KilledWriter
) -> None:
    home, _ = await moved_after_a_kill(tmp_path, killed_writer)
    how, news = await accept_damage(home, Opening(), SystemClock(), FileObjects(home.objects))
    assert how.accept_damage
    kept = Path(news[0].payload.model_dump()["kept_at"])
    assert (kept / "events.db-wal.beside-link").stat().st_size
    assert verify(home.events, home.objects).fault == ""


async def test_a_link_to_nothing_begins_no_new_log(home: Home, open_log: Open) -> None:
    shutil.rmtree(home.path.parent / "disk")
    (home.path.parent / "disk").mkdir()
    with pytest.raises(LogUnavailable, match="mount its disk"):
        async with open_log(home.path):
            pass
    assert not list((home.path.parent / "disk").iterdir())


def test_names_beside_a_database_are_made_in_one_place() -> None:
    root = Path(__file__).parents[3]
    made = re.compile(r"""["'}]-(wal|shm)["']""")
    found = {
        path.name
        for package in ("pulse_adapters", "pulse_core", "upulse_cli")
        for path in (root / package).rglob("*.py")
        if made.search(path.read_text())
    }
    assert found == {"database_files.py"}
