"""Bytes are flipped in files that a real, killed writer left; what was acknowledged is there, or Pulse says so."""

import errno
import os
import random
import shutil
import sqlite3
import subprocess
import sys
import uuid
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, closing
from pathlib import Path

import pytest

from pulse_adapters.host.clock import SystemClock
from pulse_adapters.objects.files import FileObjects
from pulse_adapters.sqlite.damage import accept_damage, set_aside
from pulse_adapters.sqlite.event_reader import SqliteEventReader
from pulse_adapters.sqlite.events import SqliteEventLog
from pulse_adapters.sqlite.open_log import Opening, open_writer
from pulse_adapters.sqlite.verify import verify
from pulse_adapters.sqlite.wal import HEADER, examine, read_index, scan
from pulse_adapters.workers.boot_id import boot_id
from pulse_core.home import HomeLayout
from pulse_core.model.errors import Damaged, LogUnavailable, NewerFormat
from pulse_core.model.event import Draft
from pulse_core.model.kinds import Paused

Open = Callable[..., AbstractAsyncContextManager[SqliteEventLog]]
Killed = Callable[[Path, int], list[str]]


@pytest.fixture(scope="module")
def left_behind(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("left")


@pytest.fixture
def acknowledged(left_behind: Path, killed_writer: Killed) -> set[str]:
    """What the writer was told is on disk; its files lie in `left_behind` and are only ever copied."""
    told = left_behind / "told"
    if not told.exists():
        told.write_text("\n".join(killed_writer(left_behind, 1_500)))
    return set(told.read_text().split("\n"))


def outcome(home: Path) -> str:
    """What Pulse makes of the files: the words it says, or nothing if it finds all well."""
    try:
        connection, _ = open_writer(home / "events.db", Opening())
    except (Damaged, NewerFormat, LogUnavailable) as error:
        return str(error)
    try:
        return verify(home / "events.db", home / "objects").fault
    finally:
        connection.close()


async def test_a_schema_that_is_no_text_any_more_is_damage_for_every_reader(
    tmp_path: Path, open_log: Open
) -> None:
    async with open_log() as log:
        await log.append(Draft(Paused(why="x")))
    path = tmp_path / "events.db"
    content = path.read_bytes()
    path.write_bytes(
        content.replace(b"BLOB NOT NULL,\n", b"BLOB NOT NULL,\x8a")
    )  # SQLite quotes it in its words
    assert "can't be decoded" in outcome(tmp_path)
    assert "can't be decoded" in verify(path, tmp_path / "objects").fault
    with pytest.raises(Damaged, match="can't be decoded"), SqliteEventReader(tmp_path):
        pass


def everything_is_there(home: Path, acknowledged: set[str]) -> bool:
    with SqliteEventReader(home) as log:
        return acknowledged <= {event.id for event in log.events()}


def flip(path: Path, place: int, bit: int) -> None:
    with path.open("r+b") as file:
        file.seek(place)
        byte = file.read(1)[0]
        file.seek(place)
        file.write(bytes([byte ^ 1 << bit]))


def copied(source: Path, target: Path) -> Path:
    shutil.copytree(source, target)
    return target


def test_a_kill_loses_nothing_that_was_acknowledged(
    left_behind: Path, acknowledged: set[str], tmp_path: Path
) -> None:
    home = copied(left_behind, tmp_path / "home")
    assert outcome(home) == ""
    assert everything_is_there(home, acknowledged)


def test_kill_after_kill_loses_nothing_and_looks_like_no_damage(
    tmp_path: Path, killed_writer: Killed
) -> None:
    acknowledged: set[str] = set()
    for turn in range(int(os.environ.get("PULSE_KILLS", "4"))):
        acknowledged |= set(killed_writer(tmp_path, 1 + turn * 97 % 700))
        if turn % 3 == 2:  # else the next writer finds the log of the killed one, frames and all
            assert outcome(tmp_path) == ""
        assert everything_is_there(tmp_path, acknowledged)


@pytest.mark.parametrize("which", ["events.db", "events.db-wal"])
def test_no_flipped_bit_is_passed_over_in_silence(
    left_behind: Path, acknowledged: set[str], tmp_path: Path, which: str
) -> None:
    source = copied(left_behind, tmp_path / "source")
    if which == "events.db":
        open_writer(source / which, Opening())[0].close()  # moves all rows into the database
    chance = random.Random(os.environ.get("PULSE_SEED", which))
    size = (source / which).stat().st_size
    told = 0
    for turn in range(int(os.environ.get("PULSE_FLIPS", "15"))):
        home = copied(source, tmp_path / f"{turn}")
        place, bit = chance.randrange(size), chance.randrange(8)
        flip(home / which, place, bit)
        said = outcome(home)
        told += bool(said)
        assert said or everything_is_there(home, acknowledged), f"bit {bit} of byte {place}"
        shutil.rmtree(home)
    assert told > 0


def test_a_flip_in_the_last_commit_is_known_from_the_index_of_the_killed_writer(
    left_behind: Path, acknowledged: set[str], tmp_path: Path
) -> None:
    home = copied(left_behind, tmp_path / "home")
    wal = (home / "events.db-wal").read_bytes()
    index = read_index(home / "events.db-shm")
    if index is None:
        pytest.skip("the writer was killed while it changed the index")
    last = index.frames
    assert 1 < last <= examine(wal, home / "events.db").committed
    os.truncate(
        home / "events.db-wal", HEADER + last * 4120
    )  # what it had written after those, it never acknowledged
    flip(home / "events.db-wal", HEADER + (last - 1) * 4120 + 100, 0)
    with pytest.raises(Damaged, match=rf"frame {last} .* acknowledged"):
        scan(home / "events.db")
    assert scan(home / "events.db", rebooted=True).committed < last


@pytest.mark.parametrize("boot", ["the same", "another"])
def test_whether_a_log_is_of_another_boot_is_no_matter_of_times(
    left_behind: Path, acknowledged: set[str], tmp_path: Path, boot: str
) -> None:
    home = copied(left_behind, tmp_path / "home")
    index = read_index(home / "events.db-shm")
    if index is None:
        pytest.skip("the writer was killed while it changed the index")
    os.truncate(home / "events.db-wal", HEADER + (index.frames - 1) * 4120)
    assert (left_behind / "events.db-boot").read_text().startswith(boot_id())
    os.utime(home / "events.db-shm", (0, 0))  # as it looks once the wall clock was set forward
    if boot == "another":
        (home / "events.db-boot").write_text(str(uuid.uuid4()))
        with SqliteEventReader(home) as log:
            log.head()
    else:
        with pytest.raises(Damaged, match=f"{index.frames} frames were acknowledged"):
            SqliteEventReader(home)


def test_a_lost_log_file_is_said(left_behind: Path, acknowledged: set[str], tmp_path: Path) -> None:
    home = copied(left_behind, tmp_path / "home")
    (home / "events.db-wal").unlink()
    assert "is gone" in outcome(home)


def test_a_log_file_cut_short_is_said(left_behind: Path, acknowledged: set[str], tmp_path: Path) -> None:
    home = copied(left_behind, tmp_path / "home")
    wal = home / "events.db-wal"
    committed = examine(wal.read_bytes(), home / "events.db").committed
    with wal.open("r+b") as file:
        file.truncate(HEADER + committed * 4120 // 2)
    assert "acknowledged" in outcome(home)


def test_damage_that_a_person_accepts_is_kept_and_left_behind(
    left_behind: Path, acknowledged: set[str], tmp_path: Path
) -> None:
    home = copied(left_behind, tmp_path / "home")
    path = home / "events.db"
    flip(home / "events.db-wal", HEADER + 2 * 4120 + 200, 3)
    assert "--accept-damage" in outcome(home)
    kept = set_aside(HomeLayout(home))
    assert {part.name for part in kept.iterdir()} >= {"events.db", "events.db-wal"}
    assert set_aside(HomeLayout(home)) != kept

    connection, _ = open_writer(path, Opening(accept_damage=True))
    connection.close()
    connection, _ = open_writer(path, Opening())
    connection.close()
    assert verify(path, home / "objects").fault == ""


def noise(path: Path) -> None:
    path.write_bytes(random.Random(1).randbytes(path.stat().st_size))


def noise_in_the_middle(path: Path) -> None:
    with path.open("r+b") as file:
        file.seek(path.stat().st_size // 2)
        file.write(random.Random(1).randbytes(30_000))


def drop(table: str) -> Callable[[Path], None]:
    def dropped(path: Path) -> None:
        with closing(sqlite3.connect(path)) as forger:
            forger.execute(f"DROP TABLE {table}")

    return dropped


@pytest.mark.parametrize(
    ("damage", "rows"),
    [(noise, {0}), (noise_in_the_middle, set(range(1, 600))), (drop("event"), {0}), (drop("meta"), {600})],
    ids=["noise", "noise in the middle", "no table of events", "no table of facts"],
)
async def test_a_log_that_can_not_be_used_is_begun_anew_once_it_is_accepted(
    tmp_path: Path, open_log: Open, damage: Callable[[Path], None], rows: set[int]
) -> None:
    home, clock, objects = HomeLayout(tmp_path), SystemClock(), FileObjects(tmp_path / "objects")
    async with open_log() as log:
        await log.append(*(Draft(Paused(why=f"{number}")) for number in range(600)))
        host = log.host
    damage(home.events)
    damaged = home.events.read_bytes()
    with pytest.raises(Damaged):
        async with open_log():
            pytest.fail("it was opened")
    how, news = await accept_damage(home, Opening(), clock, objects)
    assert (how, news) == (Opening(), ())
    assert (home.damaged / "1" / "events.db").read_bytes() == damaged
    async with open_log(how=how) as log:
        events = [event async for batch in log.since(0) for event in batch]
        assert len(events) - 1 in rows
        assert events[-1].kind == "damage-accepted"
        assert log.host == host or not rows - {0}
    assert verify(home.events, home.objects)[:2] == (len(events), "")
    assert await accept_damage(home, Opening(), clock, objects) == (Opening(), ())
    assert os.listdir(home.damaged) == ["1"]


CUT_MEANWHILE = """
import os, sqlite3, sys
from pathlib import Path
from pulse_adapters.sqlite import wal
from pulse_core.model.errors import Damaged

path, examine = Path(sys.argv[1]), wal.examine
writer = sqlite3.connect(path)
writer.execute("PRAGMA journal_mode = WAL")
writer.execute("CREATE TABLE rows (text)")
writer.execute("INSERT INTO rows VALUES (?)", ("x" * 100_000,))
writer.commit()

def cut(content, *words, **more):
    os.truncate(f"{path}-wal", wal.HEADER + 4120)
    return examine(content, *words, **more)

wal.examine = cut
try:
    wal.scan(path)
except Damaged as damaged:
    print(damaged)
"""


def test_a_wal_that_is_cut_while_it_is_looked_at_ends_nobody(tmp_path: Path) -> None:
    told = subprocess.run(
        [sys.executable, "-c", CUT_MEANWHILE, str(tmp_path / "events.db")],
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert (told.returncode, "frames were acknowledged" in told.stdout) == (0, True), told


def test_a_wal_that_a_disk_does_not_give_is_said(
    tmp_path: Path, killed_writer: Killed, monkeypatch: pytest.MonkeyPatch
) -> None:
    killed_writer(tmp_path, 20)

    def fails(*_: object) -> bytes:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(os, "pread", fails)
    with pytest.raises(LogUnavailable, match=r"events.db-wal can't be read \(Input/output error\)"):
        scan(tmp_path / "events.db")


def exchange(one: Path, other: Path) -> None:
    """Have two homes have the -wal and -shm of each other."""
    for name in ("events.db-wal", "events.db-shm"):
        (one / name).rename(one / "aside")
        (other / name).rename(one / name)
        (one / "aside").rename(other / name)


def test_the_wal_of_another_home_is_refused_before_anything_of_it_is_moved_into_the_log(
    tmp_path: Path, killed_writer: Killed
) -> None:
    """Put back where they belong, both homes have all of their rows."""
    homes, acknowledged = (tmp_path / "one", tmp_path / "other"), dict[Path, set[str]]()
    for home in homes:
        home.mkdir()
        acknowledged[home] = set(killed_writer(home, 300))
        assert outcome(home) == ""  # what it wrote is in the database now
        acknowledged[home] |= set(killed_writer(home, 100))
    exchange(*homes)
    before = {home: (home / "events.db").read_bytes() for home in homes}
    for home in homes:
        with pytest.raises(Damaged, match="is that of another log"), SqliteEventReader(home):
            pass
        assert "is that of another log" in outcome(home)
        assert (home / "events.db").read_bytes() == before[home]
    exchange(*homes)
    for home in homes:
        assert outcome(home) == ""
        assert everything_is_there(home, acknowledged[home])


def test_a_page_that_a_power_cut_tore_is_no_sign_of_another_wal(
    tmp_path: Path, killed_writer: Killed
) -> None:
    """It was being moved out of the -wal, which has it as a whole."""
    acknowledged = set(killed_writer(tmp_path, 300))
    assert outcome(tmp_path) == ""
    with SqliteEventReader(tmp_path) as log:
        chain = log.head().chain
    path = tmp_path / "events.db"
    place = path.read_bytes().index(chain)
    acknowledged |= set(killed_writer(tmp_path, 100))
    flip(path, place, 1)
    assert outcome(tmp_path) == ""
    assert everything_is_there(tmp_path, acknowledged)


def test_an_altered_row_is_named_at_open_and_can_be_accepted(tmp_path: Path, killed_writer: Killed) -> None:
    killed_writer(tmp_path, 50)
    path = tmp_path / "events.db"
    connection, start = open_writer(path, Opening())
    connection.execute("DROP TRIGGER event_never_changes")
    connection.execute("UPDATE event SET subject = 'forged' WHERE seq = 20")
    connection.close()
    with pytest.raises(Damaged, match="row 20 was altered"):
        open_writer(path, Opening())
    connection, accepted = open_writer(path, Opening(accept_damage=True))
    assert accepted.seq == start.seq
    connection.close()


def test_verify_names_the_first_altered_or_missing_row(tmp_path: Path, killed_writer: Killed) -> None:
    killed_writer(tmp_path, 50)
    objects = tmp_path / "objects"
    for statement, words in [
        ("UPDATE event SET at = at + 1 WHERE seq IN (31, 40)", "row 31 was altered"),
        ("UPDATE event SET data = '{}' WHERE seq = 30", "the data of row 30 was altered"),
        ("UPDATE event SET chain = zeroblob(32) WHERE seq = 25", "row 25 was altered"),
        ("DELETE FROM event WHERE seq BETWEEN 20 AND 22", "row 20 is missing"),
        ("UPDATE event SET actor = 'root' WHERE seq = 1", "row 1 was altered"),
    ]:
        forger = sqlite3.connect(tmp_path / "events.db")
        forger.execute("DROP TRIGGER IF EXISTS event_never_changes")
        forger.execute("DROP TRIGGER IF EXISTS event_never_goes")
        forger.execute(statement)
        forger.commit()
        forger.close()
        verdict = verify(tmp_path / "events.db", objects)
        assert verdict.fault.startswith(words)
        assert verdict.rows == int(words.split("row ")[1].split()[0]) - 1
