"""What may be empty in the log, and how it comes to be: one event takes out what another one says, and nothing else does."""

import json
import shutil
import sqlite3
from contextlib import closing
from hashlib import sha256
from pathlib import Path

import pytest

from pulse_adapters.host.clock import SystemClock
from pulse_adapters.objects.files import FileObjects
from pulse_adapters.sqlite.backup.databases import empty_redacted, salvage
from pulse_adapters.sqlite.event_reader import SqliteEventReader
from pulse_adapters.sqlite.events import SqliteEventLog
from pulse_adapters.sqlite.migrate import MIGRATIONS, format_of, steps
from pulse_adapters.sqlite.named_objects import NamedObjects
from pulse_adapters.sqlite.open_log import Opening
from pulse_adapters.sqlite.verify import verify
from pulse_core.composition import FOLD
from pulse_core.model.errors import Damaged, Refused
from pulse_core.model.event import Draft
from pulse_core.model.kinds import ErrorReported, EventRedacted, Paused, Resumed
from pulse_core.record.view import advance_state
from tests.integration.sqlite.conftest import Open
from tests.thin_disk import thin_disk

SECRET = "sesame-open-the-door"
LARGE = Draft(ErrorReported(message="x"), data=json.dumps({"message": SECRET * 3_000}))


def fault(home: Path) -> str:
    return verify(home / "events.db", home / "objects").fault


def by_hand(home: Path, *statements: str) -> None:
    """Somebody with rights on the file takes the trigger away, does it, and puts the trigger back."""
    with closing(sqlite3.connect(home / "events.db")) as hand:
        trigger = hand.execute("SELECT sql FROM sqlite_schema WHERE name = 'event_never_changes'").fetchone()[
            0
        ]
        hand.execute("DROP TRIGGER event_never_changes")
        for statement in statements:
            hand.execute(statement)
        hand.execute(trigger)
        hand.commit()


async def test_what_is_redacted_is_in_no_file_of_the_log_and_the_chain_holds(
    tmp_path: Path, open_log: Open
) -> None:
    async with open_log() as log:
        (event, _) = await log.append(Draft(Paused(why=SECRET)), Draft(Resumed()))
        (said,) = await log.append(Draft(EventRedacted(why="a slip"), subject=event.id, actor="root"))
        payload = said.payload
        assert isinstance(payload, EventRedacted)
        assert payload.sha256 == sha256(event.data.encode()).hexdigest()
        for file in tmp_path.glob("events.db*"):
            assert SECRET.encode() not in file.read_bytes(), file
        await log.check()  # the -wal that the writer emptied itself is not one that was cut short
        assert fault(tmp_path) == ""
    async with open_log() as log:
        assert [row.data async for rows in log.since(0, upto=2) for row in rows] == ["null", "{}"]
    assert fault(tmp_path) == ""
    with SqliteEventReader(tmp_path) as reader:
        assert reader.event(event.id).data == "null"


async def test_what_a_killed_writer_had_redacted_is_in_no_file_once_the_log_is_opened_again(
    tmp_path: Path, open_log: Open
) -> None:
    async with open_log() as log:
        (event,) = await log.append(Draft(Paused(why=SECRET)))
    killed = tmp_path / "killed"
    killed.mkdir()
    async with open_log() as log:
        with closing(sqlite3.connect(tmp_path / "events.db")) as reader:  # so that the -wal stays
            reader.execute("BEGIN")
            reader.execute("SELECT * FROM event").fetchone()
            await log.append(Draft(EventRedacted(why="a slip"), subject=event.id, actor="root"))
            for name in ("events.db", "events.db-wal"):
                shutil.copy(tmp_path / name, killed)
    assert SECRET.encode() in (killed / "events.db").read_bytes()
    objects = FileObjects(killed / "objects")
    async with SqliteEventLog.open(killed / "events.db", clock=SystemClock(), objects=objects):
        for file in killed.glob("events.db*"):
            assert SECRET.encode() not in file.read_bytes(), file


async def test_what_is_redacted_does_not_come_back_with_a_power_cut(tmp_path: Path, open_log: Open) -> None:
    """The -wal is emptied, which is on the disk only once the file was synced."""
    with thin_disk(tmp_path) as disk:
        async with open_log(disk.path) as log:
            (event,) = await log.append(Draft(Paused(why=SECRET)))
            await log.append(Draft(EventRedacted(why="a slip"), subject=event.id, actor="root"))
            with disk.after_power_cut() as found:
                for file in found.glob("events.db*"):
                    assert SECRET.encode() not in file.read_bytes(), file
                assert fault(found) == ""


async def test_data_that_nothing_redacted_is_missed_by_everybody(tmp_path: Path, open_log: Open) -> None:
    async with open_log() as log:
        await log.append(Draft(Paused(why="told")), Draft(Resumed()))
    by_hand(tmp_path, "UPDATE event SET data = NULL WHERE seq = 1")
    assert fault(tmp_path) == "the data of row 1 is gone, and no event-redacted names it"
    with SqliteEventReader(tmp_path) as reader:
        assert "$damaged" in next(reader.events()).data
    with pytest.raises(Damaged, match="the data of row 1 is gone"):
        async with open_log():
            pass


async def test_a_fold_never_passes_over_data_that_is_gone(tmp_path: Path, open_log: Open) -> None:
    async with open_log() as log:
        await log.append(Draft(Paused(why="told")), Draft(Resumed()))
        by_hand(tmp_path, "UPDATE event SET data = NULL WHERE seq = 1")
        with pytest.raises(Damaged, match="the data of row 1 is gone"):
            [rows async for rows in log.since(0)]


async def test_a_redaction_of_other_data_covers_nothing(tmp_path: Path, open_log: Open) -> None:
    async with open_log() as log:
        first, second = await log.append(Draft(Paused(why=SECRET)), Draft(Paused(why="another")))
        await log.append(Draft(EventRedacted(why="a slip"), subject=first.id))
    by_hand(tmp_path, f"UPDATE event SET data = NULL WHERE id = '{second.id}'")
    assert "the data of row 2 is gone" in fault(tmp_path)


@pytest.mark.parametrize("subject", ["nobody", ""])
async def test_what_is_not_there_is_refused_and_troubles_nobody_else(open_log: Open, subject: str) -> None:
    async with open_log() as log:
        with pytest.raises(Refused, match="there is no event"):
            await log.append(Draft(EventRedacted(why="x"), subject=subject))
        await log.append(Draft(Paused()))
        assert log.head.seq == 1


async def test_a_redaction_is_not_redacted(open_log: Open) -> None:
    async with open_log() as log:
        (event,) = await log.append(Draft(Paused(why=SECRET)))
        (said,) = await log.append(Draft(EventRedacted(why="x"), subject=event.id))
        with pytest.raises(Refused, match="'event-redacted' can't be redacted"):
            await log.append(Draft(EventRedacted(why="x"), subject=said.id))


async def test_the_object_of_a_redacted_payload_is_named_no_more(tmp_path: Path, open_log: Open) -> None:
    async with open_log() as log:
        (event,) = await log.append(LARGE)
        (stored,) = [path for path in (tmp_path / "objects").rglob("*") if path.is_file()]
        names = NamedObjects(tmp_path / "events.db")
        names.advance()
        assert stored.parent.name + stored.name in names
        await log.append(Draft(EventRedacted(why="x"), subject=event.id))
        names.advance()
        assert stored.parent.name + stored.name not in names
    stored.unlink()
    assert fault(tmp_path) == ""


async def test_a_backup_of_before_is_emptied_when_it_is_put_back(tmp_path: Path, open_log: Open) -> None:
    async with open_log() as log:
        (event,) = await log.append(Draft(Paused(why=SECRET)))
    (tmp_path / "backup").mkdir()
    shutil.copy(tmp_path / "events.db", tmp_path / "backup")
    async with open_log() as log:
        await log.append(Draft(EventRedacted(why="x"), subject=event.id))
    target = tmp_path / "backup" / "events.db"
    assert salvage(tmp_path / "events.db", target, tmp_path / "objects").fault == ""
    empty_redacted(target)
    assert SECRET.encode() not in target.read_bytes()
    assert fault(tmp_path / "backup") == ""


@pytest.mark.parametrize("damage", ["a row", "a page"])
async def test_rows_before_damage_are_kept_though_one_of_them_is_redacted_behind_it(
    tmp_path: Path, open_log: Open, damage: str
) -> None:
    async with open_log() as log:
        await log.append(Draft(Resumed()))
    target = tmp_path / "kept" / "events.db"
    target.parent.mkdir()
    shutil.copy(tmp_path / "events.db", target)
    async with open_log() as log:
        events = await log.append(*(Draft(Paused(why=f"{number} {'x' * 200}")) for number in range(1_000)))
        await log.append(Draft(EventRedacted(why="x"), subject=events[1].id, actor="ada"))
    if damage == "a row":
        by_hand(tmp_path, "UPDATE event SET data = '{}' WHERE seq = 500")
    else:
        with (tmp_path / "events.db").open("r+b") as file:
            file.seek((tmp_path / "events.db").stat().st_size // 2)
            file.write(bytes(8_192))
    good = verify(tmp_path / "events.db", tmp_path / "objects").rows
    assert good > 300
    assert salvage(tmp_path / "events.db", target, tmp_path / "objects").rows == good
    assert fault(target.parent) == ""
    objects = FileObjects(tmp_path / "objects")
    async with SqliteEventLog.open(target, clock=SystemClock(), objects=objects) as log:
        assert (await log.append(Draft(Resumed())))[0].seq == good + 2
        rows = [row async for rows in log.since(0) for row in rows]
    assert [row.data for row in rows].count("null") == 1
    assert (rows[good].kind, rows[good].subject, rows[good].actor) == ("event-redacted", events[1].id, "ada")


async def test_a_redaction_that_can_not_be_read_is_said_to_readers_in_words(
    tmp_path: Path, open_log: Open
) -> None:
    async with open_log() as log:
        events = await log.append(*(Draft(Paused(why="x" * 200)) for _ in range(300)))
        for event in events:
            await log.append(Draft(EventRedacted(why="x"), subject=event.id))
    with (tmp_path / "events.db").open("r+b") as file:
        file.seek((tmp_path / "events.db").stat().st_size * 2 // 3)
        file.write(bytes(16_384))
    with SqliteEventReader(tmp_path) as reader, pytest.raises(Damaged, match="malformed"):
        list(reader.events(limit=200))


async def test_an_old_home_is_given_the_triggers(tmp_path: Path, open_log: Open) -> None:
    old = tmp_path / "migrations"
    old.mkdir()
    shutil.copy(next(MIGRATIONS.glob("0001_*")), old)
    with closing(sqlite3.connect(tmp_path / "events.db")) as made:
        made.executescript(f"{steps()[0][1]}; PRAGMA user_version = 1;")
        made.execute("INSERT INTO meta VALUES ('host', 'old')")
        made.commit()
    async with open_log(how=Opening()) as log:
        await log.append(Draft(Paused()))
    with closing(sqlite3.connect(tmp_path / "events.db")) as other:
        assert format_of(other) == len(steps())
        with pytest.raises(sqlite3.IntegrityError, match="events are never replaced"):
            other.execute("INSERT OR REPLACE INTO event SELECT * FROM event")


async def test_a_pause_that_was_redacted_is_still_a_pause(open_log: Open) -> None:
    async with open_log() as log:
        (event,) = await log.append(Draft(Paused(why=SECRET), actor="ada"))
        await log.append(Draft(EventRedacted(why="x"), subject=event.id))
        state = await advance_state(log, FOLD.start, log.head.seq)
    assert (state.control.paused, state.control.by, state.control.why) == (event.moment, "ada", "")
