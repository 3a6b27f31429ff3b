"""The event log on real files: what holds, what is refused, what is kept before a change."""

import asyncio
import io
import shutil
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest

from pulse_adapters.sqlite.event_reader import SqliteEventReader
from pulse_adapters.sqlite.events import SqliteEventLog
from pulse_adapters.sqlite.migrate import MIGRATIONS, format_of, steps
from pulse_adapters.sqlite.open_log import Opening
from pulse_adapters.sqlite.reserve import SIZE
from pulse_adapters.sqlite.verify import verify
from pulse_core.model.errors import (
    Ambiguous,
    Damaged,
    LogGone,
    LogUnavailable,
    NewerFormat,
    NoHome,
    UnknownName,
)
from pulse_core.model.event import Draft
from pulse_core.model.kinds import DaemonStarted, DamageAccepted, Paused, Resumed, SettingsLoaded
from pulse_core.ports.readers import EventQuery
from tests.read_only_mount import read_only
from tests.small_disk import small_disk

Open = Callable[..., AbstractAsyncContextManager[SqliteEventLog]]
LARGE = Draft(SettingsLoaded(digest="d", processes=tuple(f"process-{n:06}" for n in range(6_000))))


def schema(connection: sqlite3.Connection) -> list[tuple[str, str]]:
    return connection.execute("SELECT name, sql FROM sqlite_schema ORDER BY name").fetchall()


FURTHER = len(steps()) + 1
"""The number of a migration that there is not yet."""


async def test_the_schema_is_the_sum_of_the_migrations(tmp_path: Path, open_log: Open) -> None:
    async with open_log():
        pass
    summed = sqlite3.connect(":memory:")
    for _, sql in steps():
        summed.executescript(sql)
    made = sqlite3.connect(tmp_path / "events.db")
    assert schema(made) == schema(summed)
    assert format_of(made) == len(steps())
    assert not (tmp_path / "events.db.before-1").exists()
    made.close()
    summed.close()


async def test_the_host_stays_the_same(open_log: Open) -> None:
    async with open_log() as log:
        host = log.host
        await log.append(Draft(Paused()))
    async with open_log() as log:
        assert log.host == host
        assert log.head.seq == 1
        (event,) = await log.append(Draft(Resumed()))
        assert event.host == host
        assert event.seq == 2


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE event SET subject = 'x'",
        "UPDATE event SET data = NULL",
        "UPDATE OR REPLACE event SET data = NULL",
        "DELETE FROM event",
        "INSERT OR REPLACE INTO event SELECT * FROM event",
        "REPLACE INTO event SELECT seq + 1, id, at, boot, mono, kind, subject, actor, host, cause, data,"
        " data_sha256, chain FROM event",
    ],
)
async def test_what_happened_stays(tmp_path: Path, open_log: Open, statement: str) -> None:
    async with open_log() as log:
        await log.append(Draft(Paused()))
        other = sqlite3.connect(tmp_path / "events.db")  # as any tool opens it, without recursive_triggers
        with pytest.raises(sqlite3.IntegrityError, match="events are never"):
            other.execute(statement)
        other.close()
        assert [event.kind async for batch in log.since(0) for event in batch] == ["paused"]


async def test_a_fold_of_the_log_does_not_hold_up_the_loop(open_log: Open) -> None:
    threads: set[int] = set()
    async with open_log() as log:
        await log.append(Draft(Paused()))
        await log.feed(lambda events: threads.add(threading.get_ident()), 0)
    assert len(threads - {threading.get_ident()}) == 1


async def test_a_migration_keeps_a_copy_first(tmp_path: Path, open_log: Open) -> None:
    async with open_log() as log:
        await log.append(Draft(Paused()))
    newer = tmp_path / "migrations"
    shutil.copytree(MIGRATIONS, newer)
    (newer / f"{FURTHER:04}_more.sql").write_text("ALTER TABLE meta ADD COLUMN note TEXT;")
    async with open_log(how=Opening(migrations=newer)) as log:
        await log.append(Draft(Resumed()))
    copy = sqlite3.connect(tmp_path / f"events.db.before-{FURTHER}")
    assert format_of(copy) == FURTHER - 1
    assert copy.execute("SELECT count(*) FROM event").fetchone() == (1,)
    copy.close()
    with pytest.raises(NewerFormat, match=rf"format {FURTHER}, .* up to {FURTHER - 1}"):
        async with open_log():
            pass


async def test_a_migration_that_fails_changes_nothing(tmp_path: Path, open_log: Open) -> None:
    async with open_log() as log:
        await log.append(Draft(Paused()))
    newer = tmp_path / "migrations"
    shutil.copytree(MIGRATIONS, newer)
    (newer / f"{FURTHER:04}_bad.sql").write_text(
        "ALTER TABLE meta ADD COLUMN note TEXT; SELECT nonsense FROM nowhere;"
    )
    with pytest.raises(Damaged, match="nowhere"):
        async with open_log(how=Opening(migrations=newer)):
            pass
    async with open_log() as log:
        assert log.head.seq == 1


async def test_a_file_that_is_no_database_is_damage(tmp_path: Path, open_log: Open) -> None:
    (tmp_path / "events.db").write_bytes(b"something else altogether" * 1000)
    with pytest.raises(Damaged):
        async with open_log():
            pass


async def test_large_payloads_lie_in_the_objects_and_are_verified(tmp_path: Path, open_log: Open) -> None:
    async with open_log() as log:
        (event,) = await log.append(LARGE)
        await log.append(Draft(Paused()))
        assert verify(tmp_path / "events.db", tmp_path / "objects").fault == ""
    (stored,) = [path for path in (tmp_path / "objects").rglob("*") if path.is_file()]
    with SqliteEventReader(tmp_path) as reader:
        assert next(reader.events()).data == event.data
        stored.write_bytes(stored.read_bytes() + b" ")
        verdict = verify(tmp_path / "events.db", tmp_path / "objects")
        assert "the payload of row 1 is lost" in verdict.fault
        assert "is not what was stored" in verdict.fault
        assert verdict.rows == 0
        stored.unlink()
        assert "is missing" in verify(tmp_path / "events.db", tmp_path / "objects").fault
        assert "$damaged" in next(reader.events()).data


async def test_verify_works_beside_a_writer_and_knows_a_log_that_was_cut(
    tmp_path: Path, open_log: Open
) -> None:
    async with open_log() as log:
        writing = asyncio.gather(*(log.append(Draft(Paused())) for _ in range(500)))
        verdict = await asyncio.to_thread(verify, tmp_path / "events.db", tmp_path / "objects")
        assert verdict.fault == ""
        await writing
        known = log.head
    verdict = verify(tmp_path / "events.db", tmp_path / "objects", expect=known)
    assert (verdict.rows, verdict.fault) == (500, "")
    cut = verify(tmp_path / "events.db", tmp_path / "objects", expect=(510, b""))
    assert cut.fault.startswith("row 501 is missing")
    other = verify(tmp_path / "events.db", tmp_path / "objects", expect=(500, b"x" * 32))
    assert other.fault.startswith("row 500 is not the one")


async def test_verify_misses_a_trigger(tmp_path: Path, open_log: Open) -> None:
    async with open_log():
        pass
    hand = sqlite3.connect(tmp_path / "events.db")
    hand.execute("DROP TRIGGER event_never_goes")
    hand.close()
    assert "event_never_goes" in verify(tmp_path / "events.db", tmp_path / "objects").fault


async def test_accepted_damage_does_not_stop_the_next_start(tmp_path: Path, open_log: Open) -> None:
    async with open_log() as log:
        await log.append(*(Draft(Paused()) for _ in range(10)))
    hand = sqlite3.connect(tmp_path / "events.db")
    hand.executescript("DROP TRIGGER event_never_changes; UPDATE event SET at = 1 WHERE seq = 5")
    hand.close()
    async with open_log(how=Opening(accept_damage=True)) as log:
        await log.append(Draft(DamageAccepted(what="row 5", kept_at="damaged/1")))
    async with open_log() as log:
        assert log.head.seq == 11
    assert "row 5" in verify(tmp_path / "events.db", tmp_path / "objects").fault


async def test_the_reader_picks_events(tmp_path: Path, open_log: Open) -> None:
    with pytest.raises(NoHome):
        SqliteEventReader(tmp_path)
    async with open_log() as log:
        events = await log.append(
            Draft(Paused(), subject="a", id="aa1"), Draft(Resumed(), subject="b", id="aa2"),
            Draft(Paused(), subject="b", id="ab"), Draft(DaemonStarted(pid=1, version="1"), id="abc"),
        )  # fmt: skip
        with SqliteEventReader(tmp_path) as reader:

            def seqs(**wanted: object) -> list[int]:
                return [event.seq for event in reader.events(EventQuery(**wanted))]  # type: ignore[arg-type]

            assert [tuple(event) for event in reader.events()] == [tuple(event) for event in events]
            assert seqs(since_seq=2) == [3, 4]
            assert seqs(kinds=["paused"]) == [1, 3]
            assert seqs(kinds=["paused"], subject="b") == [3]
            assert seqs(since_at=events[0].at + 1) == []
            assert [event.seq for event in reader.events(limit=2, newest_first=True)] == [4, 3]
            assert reader.head() == log.head
            assert reader.event("aa1").seq == 1
            assert reader.event("ab").seq == 3
            with pytest.raises(Ambiguous, match="aa1, aa2"):
                reader.event("aa")
            with pytest.raises(UnknownName):
                reader.event("b")


async def test_a_closed_log_takes_nothing_and_loses_nothing(open_log: Open) -> None:
    async with open_log() as log:
        waiting = [asyncio.create_task(log.append(Draft(Paused()))) for _ in range(300)]
        await asyncio.sleep(0)
    assert len(await asyncio.gather(*waiting)) == 300
    with pytest.raises(LogUnavailable, match="closed"):
        await log.append(Draft(Paused()))


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    with small_disk(tmp_path / "disk", "8m") as disk:
        yield disk


@pytest.mark.parametrize("left", ["nothing", "a -wal", "a -wal without its -shm"])
async def test_a_log_is_read_where_nothing_can_be_written_and_written_once_it_can_be(
    tmp_path: Path, open_log: Open, left: str
) -> None:
    home, source = tmp_path / "home", tmp_path / "source"
    home.mkdir()
    source.mkdir()
    async with open_log(source) as log:
        await log.append(Draft(Paused(why="before")))
        if left != "nothing":  # as a killed writer leaves it
            for name in ("events.db", "events.db-wal", "events.db-shm"):
                shutil.copy(source / name, home / name)
    if left == "nothing":
        shutil.copy(source / "events.db", home / "events.db")
    if left.endswith("-shm"):
        (home / "events.db-shm").unlink()
    with read_only(home) as mend:
        async with open_log(home) as log:
            with pytest.raises(LogUnavailable, match="read-only"):
                await log.append(Draft(Resumed()))
            assert [event.kind async for batch in log.since(0) for event in batch] == ["paused"]
            mend()
            assert (await log.append(Draft(Resumed())))[0].seq == 2
            assert [event.kind async for batch in log.since(0) for event in batch] == ["paused", "resumed"]
    assert verify(home / "events.db", home / "objects").fault == ""


async def test_a_log_that_became_writable_and_is_away_is_unavailable_until_it_is_back(
    tmp_path: Path, open_log: Open
) -> None:
    async with open_log() as log:
        await log.append(Draft(Paused(why="before")))
    with read_only(tmp_path) as mend:
        async with open_log() as log:
            mend()
            (tmp_path / "events.db").rename(tmp_path / "away")
            for _ in range(2):
                with pytest.raises(LogGone):
                    await log.append(Draft(Resumed()))
                assert await log.chain_at(1)
            (tmp_path / "away").rename(tmp_path / "events.db")
            assert (await log.append(Draft(Resumed())))[0].seq == 2
            assert await log.chain_at(1)
    assert verify(tmp_path / "events.db", tmp_path / "objects").fault == ""


@pytest.mark.parametrize("is_tried", [False, True])
async def test_a_log_that_was_read_only_is_saved_where_it_is_deleted(
    tmp_path: Path, open_log: Open, is_tried: bool
) -> None:
    """Whoever asks for it to be written closes what it is open in, which alone still has its rows."""
    async with open_log() as log:
        await log.append(Draft(Paused(why="before")))
    with read_only(tmp_path) as mend:
        async with open_log() as log:
            mend()
            if is_tried:
                (tmp_path / "events.db.saved").touch()  # for which nobody opens it to write
                with pytest.raises(LogUnavailable):
                    await log.append(Draft(Resumed()))
                (tmp_path / "events.db.saved").unlink()
            (tmp_path / "events.db").unlink()
            with pytest.raises(LogGone, match="1 row is saved"):
                await log.append(Draft(Resumed()))
    assert verify(tmp_path / "events.db.saved", tmp_path / "objects").rows == 1


async def test_a_full_disk_frees_the_reserve_then_refuses_then_goes_on(disk: Path, open_log: Open) -> None:
    reserve = disk / "reserve"
    async with open_log(disk, reserve=reserve) as log:
        assert reserve.stat().st_blocks * 512 >= SIZE
        ballast = disk / "ballast"
        fill_up(ballast)
        drafts = [Draft(Paused(why="x" * 1000)) for _ in range(100)]
        while reserve.exists():
            await log.append(*drafts)
        assert log.head.seq > 0
        fill_up(ballast)
        with pytest.raises(LogUnavailable, match=r"nothing was recorded: free some space"):
            await append_for_ever(log, drafts)
        before = log.head
        assert [event.seq async for batch in log.since(before.seq - 1) for event in batch] == [before.seq]
        ballast.unlink()
        await log.append(Draft(Resumed()))
        assert log.head.seq == before.seq + 1
    async with open_log(disk, reserve=reserve):
        assert reserve.stat().st_blocks * 512 >= SIZE
    assert verify(disk / "events.db", disk / "objects").fault == ""


async def append_for_ever(log: SqliteEventLog, drafts: list[Draft]) -> None:
    while True:
        await log.append(*drafts)


def fill_up(path: Path) -> None:
    with path.open("ab", buffering=0) as file:
        for size in (1 << 16, 1 << 12, 1):
            with pytest.raises(OSError, match="No space"):
                write_for_ever(file, b"x" * size)


def write_for_ever(file: io.FileIO, block: bytes) -> None:
    while True:
        file.write(block)


async def test_a_start_on_a_full_disk_frees_the_reserve(disk: Path, open_log: Open) -> None:
    async with open_log(disk, reserve=disk / "reserve") as log:
        await log.append(Draft(Paused()))
    fill_up(disk / "ballast")
    async with open_log(disk, reserve=disk / "reserve") as log:
        await log.append(Draft(Resumed()))
        assert log.head.seq == 2
