"""Samples are rolled up to minutes before they go."""

import asyncio
import json
import sqlite3
import threading
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import pytest

from pulse_adapters.sqlite import rollups
from pulse_adapters.sqlite.connect import connect_readonly
from pulse_adapters.sqlite.rollups import ROLL_UP
from pulse_adapters.sqlite.vitals import SqliteVitals
from pulse_core.model.moment import Moment

MINUTE = 60
SCHEMA = Path(rollups.__file__).parent / "schema" / "vitals.sql"
MINUTES = """
    SELECT field, minute * 60000000, count, low, coalesce(mean, low), coalesce(high, low), coalesce(last, low)
    FROM series JOIN minute ON minute.series = series.id WHERE key = ? ORDER BY minute, field
"""


class Minute(NamedTuple):
    """The roll-up of one number over a minute; last: the newest sample's."""

    field: str
    at: int
    samples: int
    low: float
    mean: float
    high: float
    last: float


def minutes(home: Path, key: str) -> list[Minute]:
    """The minutes of a key, by time and field."""
    with closing(connect_readonly(home / "vitals.db")) as connection:
        return [Minute(*row) for row in connection.execute(MINUTES, (key,))]


def at(second: int) -> Moment:
    return Moment(second * 1_000_000, "boot", second)


@pytest.fixture
async def vitals(tmp_path: Path) -> AsyncIterator[SqliteVitals]:
    async with SqliteVitals.open(tmp_path / "vitals.db") as vitals:
        yield vitals


async def test_samples_are_rolled_up_to_minutes_before_they_go(tmp_path: Path, vitals: SqliteVitals) -> None:
    for second, used in ((0, 0.5), (20, 1.0), (40, 0.0), (MINUTE, 7)):
        vitals.sample("k", at(second), {"disks": {"/a.b": {"used": used}}, "some_list": [second]})
    vitals.sample("other", at(5), {"x": 3, "word": "no", "flag": True, "nothing": None})
    await vitals.trim(at(2 * MINUTE).at)
    assert minutes(tmp_path, "k") == [
        Minute("disks./a.b.used", 0, 3, 0.0, 0.5, 1.0, 0.0),
        Minute("some_list[0]", 0, 3, 0, 20, 40, 40),
        Minute("disks./a.b.used", at(MINUTE).at, 1, 7, 7, 7, 7),
        Minute("some_list[0]", at(MINUTE).at, 1, MINUTE, MINUTE, MINUTE, MINUTE),
    ]
    assert minutes(tmp_path, "other") == [
        Minute("flag", 0, 1, 1, 1, 1, 1),
        Minute("x", 0, 1, 3, 3, 3, 3),
    ]


async def test_a_minute_that_was_rolled_up_stays_as_it_is(tmp_path: Path, vitals: SqliteVitals) -> None:
    vitals.sample("k", at(1), {"x": 1})
    await vitals.trim(at(MINUTE).at)
    vitals.sample("k", at(2), {"x": 2})  # the clock was set back
    assert (await vitals.trim(at(MINUTE).at)).samples == 1
    assert [minute.last for minute in minutes(tmp_path, "k")] == [1]


async def test_many_samples_are_all_rolled_up(tmp_path: Path, vitals: SqliteVitals) -> None:
    for number in range(2_000):
        vitals.sample(f"k{number % 3}", at(1 + number // 4), {"x": number})
    assert (await vitals.trim(at(10 * MINUTE).at)).samples == 2_000
    counts = [minute.samples for key in ("k0", "k1", "k2") for minute in minutes(tmp_path, key)]
    assert sum(counts) == 2_000
    assert len(counts) == 3 * 9


def steps(path: Path, known: int, newer: int) -> int:
    """Thousands of steps of SQLite's machine that ten samples of ten numbers take, beside so many known names of their key,
    and so many samples that are not old."""
    names = [("k", f"x{number}") for number in range(known)]
    data, taken = json.dumps({f"x{number}": 1.5 for number in range(10)}), 0

    def count() -> None:
        nonlocal taken
        taken += 1

    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(SCHEMA.read_text())
        connection.executemany("INSERT INTO series (key, field) VALUES (?, ?)", names)
        samples = [("k", second, data) for second in [1] * 10 + [100] * newer]
        connection.executemany(
            "INSERT INTO sample (key, at, boot, mono, data) VALUES (?, ?, '', 0, ?)", samples
        )
        connection.set_progress_handler(count, 1_000)
        for sql in ROLL_UP:
            connection.execute(sql, (50,) * sql.count("?"))
        assert connection.execute("SELECT count(*), min(count) FROM minute").fetchone() == (10, 10)
    return taken


def test_what_a_roll_up_takes_does_not_grow_with_the_names_that_are_known_nor_with_newer_samples(
    tmp_path: Path,
) -> None:
    few = steps(tmp_path / "few.db", known=10, newer=0)
    assert steps(tmp_path / "names.db", known=2_000, newer=0) <= 2 * few
    assert steps(tmp_path / "newer.db", known=10, newer=2_000) <= 2 * few


async def test_samples_that_a_full_disk_does_not_roll_up_stay(tmp_path: Path, vitals: SqliteVitals) -> None:
    for number in range(2_000):
        vitals.sample("k", at(number), {f"x{number}": number})
    await vitals.flush()
    with closing(connect_readonly(tmp_path / "vitals.db")) as connection:
        pages = connection.execute("PRAGMA page_count").fetchone()[0]
        before = connection.execute("SELECT count(*) FROM sample").fetchone()
        await vitals._connection.execute_fetchall(
            f"PRAGMA max_page_count = {pages}"
        )  # so SQLite calls it full
        refused = await vitals.trim(at(60 * MINUTE).at)
        left = connection.execute("SELECT count(*) FROM sample").fetchone()[0]
        assert before == (left + refused.samples,)
        assert sum(minute.samples for minute in minutes(tmp_path, "k")) == refused.samples
        assert "full" in refused.fault
        await vitals._connection.execute_fetchall(f"PRAGMA max_page_count = {pages * 100}")
        assert (await vitals.trim(at(60 * MINUTE).at)).fault == ""
    assert sum(minute.samples for minute in minutes(tmp_path, "k")) == 2_000


async def test_a_step_that_is_called_off_before_it_begins_loses_nothing_of_what_comes_after(
    tmp_path: Path,
) -> None:
    path, held = tmp_path / "vitals.db", threading.Event()
    async with SqliteVitals.open(path) as vitals:
        busy = asyncio.create_task(vitals._connection.run(lambda _: held.wait(60)))
        step = asyncio.create_task(vitals._together(("DELETE FROM sample WHERE at < ?",), 1))
        for _ in range(3):
            await asyncio.sleep(0)
        step.cancel()
        await asyncio.wait([step])
        held.set()
        await busy
        vitals.sample("a", at(1), {"n": 1})
    async with SqliteVitals.open(path) as vitals:
        assert [sample.data for sample in await vitals.recent(0)] == [{"n": 1}]
