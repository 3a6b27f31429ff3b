"""Vitals, checkpoints and objects on real files: deletable at any time, and never the reason for a failed start."""

import asyncio
import os
import shutil
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from pulse_adapters.objects.files import FileObjects
from pulse_adapters.sqlite import vitals_file
from pulse_adapters.sqlite.checkpoints import SqliteCheckpoints, read_host
from pulse_adapters.sqlite.connect import lost_frames
from pulse_adapters.sqlite.named_objects import unnamed_by_ticks
from pulse_adapters.sqlite.rollups import KEPT
from pulse_adapters.sqlite.shared_memory import MendingConnection
from pulse_adapters.sqlite.vitals import QUEUED, SqliteVitals
from pulse_adapters.sqlite.vitals_reader import SqliteVitalsReader
from pulse_adapters.workers.home_folder import HomeFolder
from pulse_core.model.errors import Damaged
from pulse_core.model.event import Checkpoint, Head
from pulse_core.model.moment import Moment
from pulse_core.model.tick import LayerOutcome, TickRecord
from tests.integration.sqlite.test_sqlite_rollups import minutes


def at(second: int) -> Moment:
    return Moment(second * 1_000_000, "boot", second)


def tick(number: int) -> TickRecord:
    return TickRecord(number, at(number), "timer", Head(), (3,), "d", "0.1", (), ("e",), 100, 20)


async def test_ids_go_on_after_the_last_one_on_disk(tmp_path: Path) -> None:
    async with SqliteVitals.open(tmp_path / "vitals.db") as vitals:
        last = [vitals.sample("k", at(1), {}) for _ in range(3)][-1]
    async with SqliteVitals.open(tmp_path / "vitals.db") as vitals:
        assert vitals.sample("k", at(1), {}).id == last.id + 1
        assert await vitals.samples([last.id]) == [last]


async def test_vitals_on_a_full_disk_are_left_where_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, opened = tmp_path / "vitals.db", vitals_file._open
    async with SqliteVitals.open(path) as vitals:
        kept = vitals.sample("k", at(1), {})

    def full(where: Path) -> tuple[MendingConnection, int]:
        if where == path:
            error = sqlite3.OperationalError("database or disk is full")
            error.sqlite_errorcode = sqlite3.SQLITE_FULL
            raise error
        return opened(where)

    with monkeypatch.context() as patch:
        patch.setattr(vitals_file, "_open", full)
        async with SqliteVitals.open(path) as vitals:
            vitals.sample("k", at(2), {})
            assert vitals.set_aside.endswith("disk is full; samples are kept in memory")
    async with SqliteVitals.open(path) as vitals:
        assert await vitals.samples([kept.id]) == [kept]


@pytest.mark.parametrize("damage", [b"", b"no database" * 1000, None])
async def test_unusable_vitals_are_begun_anew(tmp_path: Path, damage: bytes | None) -> None:
    path = tmp_path / "vitals.db"
    async with SqliteVitals.open(path) as vitals:
        vitals.sample("k", at(1), {})
    if damage is None:
        path.unlink()
    else:
        path.write_bytes(damage)
    async with SqliteVitals.open(path) as vitals:
        assert ("vitals.db.unusable" in vitals.set_aside) == bool(damage)
        sample = vitals.sample("k", at(1), {})
        assert await vitals.samples([sample.id]) == [sample]


async def test_a_row_that_was_altered_on_the_disk_is_left_out(tmp_path: Path) -> None:
    path, layers = tmp_path / "vitals.db", (LayerOutcome("altered", "passed"),)
    async with SqliteVitals.open(path) as vitals:
        good, bad = vitals.sample("k", at(1), {"x": 1}), vitals.sample("l", at(2), {"y": 2})
        older, _ = vitals.sample("m", at(1), {"z": 1}), vitals.sample("m", at(2), {"y": 2})
        vitals.record(tick(1))
        vitals.record(replace(tick(2), layers=layers))
    path.write_bytes(
        path.read_bytes().replace(b'{"y": 2}', b'{"y": ?}').replace(b'[["altered"', b'?["altered"')
    )
    async with SqliteVitals.open(path) as vitals:
        assert await vitals.samples([good.id, bad.id]) == [good]
        assert await vitals.newest("m", "z") == older
        assert await vitals.ticks(2) == [tick(1)]
        assert await vitals.ticks(1) == []
    with SqliteVitalsReader(tmp_path) as reader:
        assert reader.last_samples() == [good]
        assert reader.ticks(2) == [tick(1)]
        assert list(reader.layers_since(0)) == [(20, ())]


async def test_what_does_not_fit_is_dropped_oldest_first_and_counted(tmp_path: Path) -> None:
    async with SqliteVitals.open(tmp_path / "vitals.db") as vitals:
        samples = [vitals.sample("k", at(1), {}) for _ in range(QUEUED + 5)]
        assert vitals.dropped == 5
        assert await vitals.samples([samples[4].id]) == []
        assert await vitals.samples([samples[5].id]) == [samples[5]]


@pytest.mark.parametrize("harm", ["deleted", "replaced", "damaged", "wal deleted", "wal replaced"])
async def test_it_is_told_when_what_is_written_is_lost(tmp_path: Path, harm: str) -> None:
    path = tmp_path / "vitals.db"
    async with SqliteVitals.open(path) as vitals:
        vitals.sample("k", at(1), {})
        await vitals.flush()
        assert vitals.trouble == ""
        if harm == "damaged":
            with closing(sqlite3.connect(path)) as other:
                other.execute("DROP TABLE sample")
        else:
            lost = Path(f"{path}-wal") if harm.startswith("wal") else path
            lost.unlink()
            if harm.endswith("replaced"):
                lost.write_bytes(b"")
        vitals.sample("k", at(2), {})
        await vitals.flush()
        words = {
            "deleted": "vitals.db is gone (No such file",
            "replaced": "vitals.db was replaced",
            "damaged": "no such table",
            "wal deleted": "vitals.db-wal is gone (No such file",
            "wal replaced": "vitals.db-wal was replaced",
        }
        assert words[harm] in vitals.trouble


async def test_it_is_told_once_what_a_bad_frame_has_taken_along_and_no_id_comes_to_mean_another_sample(
    tmp_path: Path,
) -> None:
    path, wal = tmp_path / "vitals.db", tmp_path / "vitals.db-wal"
    async with SqliteVitals.open(path) as vitals:
        for second in range(1, 9):
            last = vitals.sample("k", at(second), {})
            await vitals.flush()
        killed = path.read_bytes(), wal.read_bytes()
    path.write_bytes(killed[0])
    frame = len(killed[1]) - 4 * (4096 + 24)
    wal.write_bytes(killed[1][:frame] + b"?" * 4096 + killed[1][frame + 4096 :])
    words = "is altered or missing, and transactions follow"
    assert words in lost_frames(path)
    async with SqliteVitals.open(path) as vitals:
        assert words in vitals.set_aside
        assert await vitals.samples([last.id]) == []
        assert vitals.sample("k", at(9), {}).id > last.id
        await vitals.flush()
        killed = path.read_bytes(), wal.read_bytes()
    path.write_bytes(killed[0])
    wal.write_bytes(killed[1])
    async with SqliteVitals.open(path) as vitals:
        assert vitals.set_aside == ""


SCHEMA_OF_OLD = """
CREATE TABLE sample (id INTEGER PRIMARY KEY, key TEXT NOT NULL, at INTEGER NOT NULL, boot TEXT NOT NULL,
    mono INTEGER NOT NULL, data TEXT NOT NULL) STRICT;
CREATE TABLE tick (tick INTEGER PRIMARY KEY, at INTEGER NOT NULL, boot TEXT NOT NULL, mono INTEGER NOT NULL,
    woken_by TEXT NOT NULL, seq INTEGER NOT NULL, chain TEXT NOT NULL, samples TEXT NOT NULL,
    settings TEXT NOT NULL, version TEXT NOT NULL, layers TEXT NOT NULL, effects TEXT NOT NULL,
    tick_ms INTEGER NOT NULL, took_us INTEGER NOT NULL, snapshot TEXT) STRICT;
INSERT INTO sample VALUES (7, 'k', 5000000, 'boot', 5, '{"x": 3}');
PRAGMA user_version = 1;
"""


async def test_vitals_of_before_there_were_minutes_are_kept_and_rolled_up(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "vitals.db")) as old:
        old.executescript(SCHEMA_OF_OLD)
    async with SqliteVitals.open(tmp_path / "vitals.db") as vitals:
        assert [sample.id for sample in await vitals.samples([7])] == [7]
        assert (await vitals.trim(at(60).at)).samples == 1
        assert [minute.last for minute in minutes(tmp_path, "k")] == [3]
        with SqliteVitalsReader(tmp_path) as reader:
            assert [(one.field, one.at, one.mean) for one in reader.minute_ranges("k", -1, 60_000_000)] == [
                ("x", 0, 3)
            ]
            assert reader.minute_ranges("other", -1, 60_000_000) == []


async def test_a_trim_that_is_cancelled_leaves_every_sample_either_there_or_rolled_up(tmp_path: Path) -> None:
    async with SqliteVitals.open(tmp_path / "vitals.db") as vitals:
        for number in range(6_000):
            vitals.sample("k", at(60 + number // 4), {"x": number})
        await vitals.flush()
        trimming = asyncio.ensure_future(vitals.trim(at(9_000).at))
        while len(minutes(tmp_path, "k")) < 8:
            await asyncio.sleep(0)
        trimming.cancel()
        await asyncio.wait([trimming])
        left, rolled = len(await vitals.recent(-1)), minutes(tmp_path, "k")
        assert trimming.cancelled()
        assert 0 < left < 6_000
        assert left + sum(minute.samples for minute in rolled) == 6_000
        vitals.sample("k", at(1), {})
    async with SqliteVitals.open(tmp_path / "vitals.db") as vitals:
        assert len(await vitals.recent(-1)) == left + 1
        await vitals.trim(at(9_000).at)
        assert sum(minute.samples for minute in minutes(tmp_path, "k")) == 6_000


async def test_which_objects_no_tick_names(tmp_path: Path) -> None:
    async with SqliteVitals.open(tmp_path / "vitals.db") as vitals:
        vitals.record(replace(tick(1), snapshot="aa"))
        vitals.record(replace(tick(90), snapshot="bb"))
        await vitals.flush()
        assert unnamed_by_ticks(tmp_path / "vitals.db", ["aa", "bb", "cc"]) == ["cc"]
        await vitals.trim(at(60).at, at(60).at)
        assert unnamed_by_ticks(tmp_path / "vitals.db", ["aa", "bb", "cc"]) == ["aa", "cc"]


async def test_of_ticks_with_a_snapshot_the_newest_are_kept_beyond_their_time(tmp_path: Path) -> None:
    async with SqliteVitals.open(tmp_path / "vitals.db") as vitals:
        for number in range(1, KEPT + 4):
            vitals.record(replace(tick(number), snapshot=f"{number}"))
        assert (await vitals.trim(at(KEPT + 3).at)).ticks == 2
        assert [one.tick for one in await vitals.ticks(KEPT + 9)] == list(range(3, KEPT + 4))


async def test_a_file_of_before_ticks_named_the_engine_is_read_and_gone_on_with(tmp_path: Path) -> None:
    row = "(1, 5000000, 'boot', 5, 'timer', 3, '', '[7]', 'd', '0.1', '[]', '[\"k\"]', 100, 20, NULL)"
    with closing(sqlite3.connect(tmp_path / "vitals.db")) as old:
        old.executescript(f"{SCHEMA_OF_OLD} INSERT INTO tick VALUES {row};")
    with SqliteVitalsReader(tmp_path) as reader:  # no daemon of this version has opened it yet
        assert [(one.tick, one.effects, one.engine) for one in reader.ticks(9)] == [(1, ("k",), None)]
    async with SqliteVitals.open(tmp_path / "vitals.db") as vitals:
        vitals.record(replace(tick(2), engine="abc"))
        assert [one.engine for one in await vitals.ticks(9)] == [None, "abc"]
        with SqliteVitalsReader(tmp_path) as reader:
            assert [one.engine for one in reader.ticks(9)] == ["abc", None]


async def test_the_reader_sees_what_was_flushed(tmp_path: Path) -> None:
    with SqliteVitalsReader(tmp_path) as empty:
        assert (empty.last_samples(), empty.ticks(5), empty.tick_count()) == ([], [], 0)
    async with SqliteVitals.open(tmp_path / "vitals.db") as vitals:
        vitals.sample("system", at(1), {"cpu": 1})
        for number in range(3):
            vitals.record(tick(number))
        newest = [vitals.sample(key, at(2), {"cpu": 2}) for key in ("system", "processes")]
        await vitals.flush()
        with SqliteVitalsReader(tmp_path) as reader:
            assert [(row.key, row.data, row.id) for row in reader.last_samples()] == [
                ("processes", {"cpu": 2}, newest[1].id),
                ("system", {"cpu": 2}, newest[0].id),
            ]
            assert [row.moment.at for row in reader.samples([newest[0].id])] == [at(2).at]
            assert [row.tick for row in reader.ticks(2)] == [2, 1]
            one = reader.tick(1)
            assert one
            assert (one.effects, one.samples, one.layers, one.took_us) == (("e",), (3,), (), 20)
            assert reader.tick(9) is None
            assert reader.tick_count() == 2


CHECKPOINT = Checkpoint(1, Head(7, b"c" * 32), '{"some": "state"}')


async def test_an_altered_checkpoint_is_none(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    checkpoints = SqliteCheckpoints(path)
    await checkpoints.save({"one": CHECKPOINT, "two": CHECKPOINT._replace(state="other")})
    path.write_bytes(path.read_bytes().replace(b'"some"', b'"sane"'))
    assert set(await checkpoints.load()) == {"two"}


@pytest.mark.parametrize("damage", [b"", b"no database" * 1000])
async def test_an_unreadable_cache_is_empty_and_begun_anew(tmp_path: Path, damage: bytes) -> None:
    checkpoints = SqliteCheckpoints(tmp_path / "state.db")
    await checkpoints.save({"one": CHECKPOINT})
    (tmp_path / "state.db").write_bytes(damage)
    assert await checkpoints.load() == {}
    await checkpoints.save({"one": CHECKPOINT})
    assert await checkpoints.load() == {"one": CHECKPOINT}


async def test_a_home_is_known_by_its_id_before_its_first_checkpoint(tmp_path: Path) -> None:
    kept = {"one": CHECKPOINT}
    await SqliteCheckpoints(tmp_path / "state.db").save(kept)
    for host in ("first", "first", "second"):  # a new log was begun in place of a lost one
        checkpoints = SqliteCheckpoints(tmp_path / "state.db", host)
        await checkpoints.tell_host()
        assert (read_host(tmp_path / "state.db"), await checkpoints.load()) == (host, kept)


async def test_an_altered_object_is_damage_until_it_is_put_again(tmp_path: Path) -> None:
    objects = FileObjects(tmp_path)
    name = await objects.put(b"hello")
    objects.path(name).write_bytes(b"hallo")
    with pytest.raises(Damaged, match=name[2:]):
        await objects.get(name)
    await objects.put(b"hello")
    assert await objects.get(name) == b"hello"
    assert os.listdir(tmp_path / name[:2]) == [name[2:]]


async def test_objects_are_stored_though_their_folders_were_deleted_meanwhile(tmp_path: Path) -> None:
    objects = FileObjects(tmp_path / "objects")
    name = await objects.put(b"hello")
    for folder in (objects.path(name).parent, tmp_path / "objects"):
        shutil.rmtree(folder)
        assert await objects.put(b"hello") == name
        assert await objects.get(name) == b"hello"


async def test_no_checkpoint_is_saved_into_a_home_that_has_taken_the_place_of_one_that_was_moved(
    tmp_path: Path,
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    folder, kept = HomeFolder(home), {"x": Checkpoint(1, Head(7, b"x"), "{}")}
    checkpoints = SqliteCheckpoints(home / "state.db", is_in_place=folder.is_in_place)
    await checkpoints.save(kept)
    home.rename(tmp_path / "moved")
    home.mkdir()
    await checkpoints.save(kept)
    folder.close()
    assert not list(home.iterdir())
    assert await SqliteCheckpoints(tmp_path / "moved" / "state.db").load() == kept
