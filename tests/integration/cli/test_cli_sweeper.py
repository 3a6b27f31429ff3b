"""Objects that nothing names go, and nothing else does; the same for files of no use."""

import asyncio
import gzip
import os
import sqlite3
import time
from contextlib import closing
from pathlib import Path

import pytest

from pulse_adapters.config.home import Home
from pulse_adapters.files import archive
from pulse_adapters.host import leftovers
from pulse_adapters.host.clock import SystemClock
from pulse_adapters.host.outputs import ROTATE_AT, open_log_output
from pulse_adapters.objects.files import LATEST, FileObjects
from pulse_adapters.sqlite.events import SqliteEventLog
from pulse_adapters.sqlite.payloads import LARGE
from pulse_adapters.sqlite.vitals import SqliteVitals
from pulse_core.app.gc import Sweeper
from pulse_core.model.errors import Damaged, LogUnavailable
from pulse_core.model.event import Draft, Head
from pulse_core.model.kinds import ErrorReported, SettingsRejected
from pulse_core.model.moment import Moment
from pulse_core.model.tick import TickRecord
from pulse_core.ports.stores import SweepResult
from pulse_core.settings.settings import Settings
from upulse_cli.wiring.gc import sweeper_of

LONG_AGO = time.time() - 2 * 86_400
SESSIONS = {"resources": {"sessions": {"root": "/nowhere/sessions", "retain": "1d"}}}


@pytest.fixture
def home(tmp_path: Path) -> Home:
    made = Home(tmp_path / "home")
    made.create()
    return made


async def large_event(home: Home, objects: FileObjects, mark: str) -> str:
    """The name of the object with the payload of a new row."""
    before = set(home.objects.rglob("*"))
    async with SqliteEventLog.open(home.events, clock=SystemClock(), objects=objects) as log:
        large = SettingsRejected(faults=(mark * 1_000,) * (LARGE // 1_000 + 1))
        await log.append(Draft(ErrorReported(message=mark)), Draft(large))
    (path,) = [path for path in home.objects.rglob("*") if path not in before and path.is_file()]
    return path.parent.name + path.name


def age(objects: FileObjects, *names: str) -> None:
    for name in names:
        os.utime(objects.path(name), (LONG_AGO, LONG_AGO))


def sweeper(home: Home, objects: FileObjects, settings: Settings | None = None, damage: str = "") -> Sweeper:
    return sweeper_of(home, objects, lambda: settings or Settings(), lambda: damage)


async def test_only_old_objects_that_nothing_names_go(home: Home) -> None:
    writing = FileObjects(home.objects)
    named = await large_event(home, writing, "x")
    orphan, young, snapshot = [await writing.put(blob) for blob in (b"orphan", b"young", b"snapshot")]
    async with SqliteVitals.open(home.vitals) as vitals:
        tick = TickRecord(1, Moment(1, "b", 1), "timer", Head(), (), "d", "0", (), (), 1, 1, snapshot)
        vitals.record(tick)
        await vitals.flush()
        age(writing, named, orphan, snapshot)
        moved = sweeper_of(home, FileObjects(home.objects), Settings, lambda: "", is_in_place=lambda: False)
        assert await moved() == SweepResult()
        sweep = sweeper(home, objects := FileObjects(home.objects))
        assert await sweep.forecast() == await sweep() == SweepResult(1, 0, 6)
        assert await objects.get(orphan) is None
        assert None not in [await objects.get(name) for name in (named, young, snapshot)]
        await vitals.trim(60_000_000, 60_000_000)
        assert (await sweep()).objects == 1
    assert await objects.get(snapshot) is None
    assert await sweep() == SweepResult()


async def test_what_is_no_folder_of_objects_ends_no_sweep(home: Home) -> None:
    objects = FileObjects(home.objects)
    await large_event(home, objects, "x")
    age(objects, orphan := await objects.put(b"orphan"))
    other = "00" if orphan[:2] != "00" else "01"
    (home.objects / other).write_text("no folder")
    assert (await sweeper(home, FileObjects(home.objects))()).objects == 1
    assert (home.objects / other).read_text() == "no folder"


async def test_rows_that_came_since_the_last_sweep_are_known_to_the_next(home: Home) -> None:
    objects = FileObjects(home.objects)
    sweep = sweeper(home, FileObjects(home.objects))
    age(objects, await large_event(home, objects, "x"))
    assert await sweep() == SweepResult()
    age(objects, await large_event(home, objects, "y"))
    assert await sweep() == SweepResult()


async def test_an_object_that_is_put_again_stays_for_the_event_that_will_name_it(home: Home) -> None:
    objects = FileObjects(home.objects)
    await large_event(home, objects, "x")
    again, latest = await objects.put(b"again"), await objects.put(b"latest")
    age(objects, again, latest)
    assert await objects.put(b"again") == again  # now it is young
    assert await sweeper(home, objects)() == SweepResult()  # and the other was put by this process just now
    for number in range(LATEST):
        await objects.put(str(number % 3).encode())
    age(objects, again)
    assert (await sweeper(home, objects)()).objects == 2  # nobody can be about to name them any more


async def test_putting_and_sweeping_at_the_same_time_lose_nothing(home: Home) -> None:
    objects = FileObjects(home.objects)
    await large_event(home, objects, "x")
    blobs = [str(number).encode() for number in range(200)]
    names = [await objects.put(blob) for blob in blobs]
    age(objects, *names)
    objects = FileObjects(home.objects)  # a new process, which remembers no puts
    sweeping = asyncio.ensure_future(sweeper(home, objects)())
    assert await asyncio.gather(*map(objects.put, blobs)) == names
    await sweeping
    assert [await objects.get(name) for name in names] == blobs


@pytest.mark.parametrize("why", ["damage", "copies"])
async def test_nothing_goes_while_the_log_is_damaged_or_copies_of_damage_are_kept(
    home: Home, why: str
) -> None:
    writing = FileObjects(home.objects)
    await large_event(home, writing, "x")
    age(writing, await writing.put(b"orphan"))
    if why == "copies":
        (home.damaged / "1").mkdir(parents=True)
    sweep = sweeper(home, FileObjects(home.objects), damage="row 3 was altered" if why == "damage" else "")
    assert await sweep() == SweepResult()


async def test_a_reference_that_was_altered_stops_the_sweep(home: Home) -> None:
    objects = FileObjects(home.objects)
    named = await large_event(home, objects, "x")
    with closing(sqlite3.connect(home.events)) as forger:
        forger.execute("DROP TRIGGER event_never_changes")
        forger.execute("UPDATE event SET data = replace(data, ?, ?) WHERE seq = 2", (named, "0" * 64))
        forger.commit()
    age(objects, named)
    with pytest.raises(Damaged, match="row 2 was altered"):
        await sweeper(home, FileObjects(home.objects))()
    assert await objects.get(named)


@pytest.mark.parametrize("which", ["events", "vitals"])
async def test_nothing_goes_while_it_cannot_be_known_what_is_named(home: Home, which: str) -> None:
    objects = FileObjects(home.objects)
    await large_event(home, objects, "x")
    orphan = await objects.put(b"orphan")
    age(objects, orphan)
    for part in home.path.glob(f"{which}.db*"):
        part.unlink()
    if which == "vitals":
        home.vitals.write_bytes(b"no database" * 1_000)
    with pytest.raises(LogUnavailable, match=r"read|not there"):
        await sweeper(home, FileObjects(home.objects))()
    assert await objects.get(orphan)


def old_file(path: Path, content: bytes = b"1234") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    os.utime(path, (LONG_AGO, LONG_AGO))
    return path


async def test_what_was_broken_off_and_old_logs_go(home: Home) -> None:
    await large_event(home, FileObjects(home.objects), "x")
    going = [
        old_file(home.objects / "ab" / ".x.unfinished"),
        old_file(home.path / "events.db.before-2.unfinished"),
        old_file(home.path / "vitals.db.unusable-wal"),
        old_file(home.outputs / "gateway.log.1"),
    ]
    os.utime(going[-1], (LONG_AGO - 6 * 86_400,) * 2)
    staying = [
        old_file(home.objects / "ab" / "README"),
        old_file(home.outputs / "gateway.log"),
        old_file(home.outputs / "worker.log.1"),
        old_file(home.path / "events.db.before-2"),
        home.objects / "ab" / ".y.unfinished",
    ]
    staying[-1].write_bytes(b"young")
    sweep = sweeper(home, FileObjects(home.objects))
    assert await sweep.forecast() == await sweep() == SweepResult(0, 4, 16)
    assert [path for path in going if path.exists()] == []
    assert [path for path in staying if not path.exists()] == []


async def test_archives_go_when_their_time_is_over(home: Home) -> None:
    await large_event(home, FileObjects(home.objects), "x")
    going = old_file(home.path / "archive" / "sessions-20200101T000000Z-abc-1.tar.gz")
    renewed = home.path / "archive" / "sessions-20200101T000000Z-abc-2.tar.gz"
    renewed.write_bytes(b"young")
    staying = [renewed, old_file(going.with_name("sessions-20990101T000000Z-abc-1.tar.gz")),
               old_file(going.with_name("sessions-20191301T000000Z-abc-1.tar.gz")),
               old_file(going.with_name("mine.tar.gz"))]  # fmt: skip
    assert (await sweeper(home, FileObjects(home.objects))()).files == 0  # without settings nobody archives
    sweep = sweeper(home, FileObjects(home.objects), Settings.model_validate(SESSIONS))
    assert (await sweep()).files == 1
    assert not going.exists()
    assert all(path.exists() for path in staying)


def test_archives_are_known_by_the_name_that_the_archiver_gives() -> None:
    name = "sessions-20240102T030405Z-0197-abc-17.tar.gz"
    theirs, ours = archive.NAME.fullmatch(name), leftovers.ARCHIVE.fullmatch(name)
    assert theirs is not None
    assert ours is not None
    assert theirs[1] == ours[1]


async def test_a_log_that_is_written_is_CutTo_its_end_and_its_writer_goes_on(home: Home) -> None:
    await large_event(home, FileObjects(home.objects), "x")
    log = home.outputs / "gateway.log"
    writer = open_log_output(log).target
    lines = [b"%08d\n" % number for number in range(ROTATE_AT // 9 + 1_000)]
    os.write(writer, b"".join(lines))
    swept = await sweeper(home, FileObjects(home.objects))()
    assert swept.files == 1
    assert 0 < swept.bytes < 100_000
    os.write(writer, b"and on\n")
    os.close(writer)
    assert log.read_bytes() == b"and on\n"
    kept = (home.outputs / "gateway.log.1").read_bytes()
    assert len(kept) == ROTATE_AT
    assert kept.endswith(b"".join(lines[-1_000:]))
    assert (await sweeper(home, FileObjects(home.objects))()).files == 0


async def test_a_link_among_the_logs_is_not_followed(home: Home, tmp_path: Path) -> None:
    await large_event(home, FileObjects(home.objects), "x")
    precious = tmp_path / "precious"
    precious.write_bytes(gzip.compress(b"x") + bytes(ROTATE_AT + 10))
    home.outputs.mkdir()
    (home.outputs / "gateway.log").symlink_to(precious)
    (home.path / "x.unfinished").symlink_to(precious)
    assert (await sweeper(home, FileObjects(home.objects))()).files == 0
    assert precious.stat().st_size > ROTATE_AT
