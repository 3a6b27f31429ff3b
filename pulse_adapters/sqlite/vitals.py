"""Samples and tick records in vitals.db: kept in memory first, written behind, and lost without regret."""

import asyncio
import json
import sqlite3
from collections import deque
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from pulse_adapters.sqlite.connection_thread import ThreadConnection, connect_in_thread
from pulse_adapters.sqlite.errors import is_of_values
from pulse_adapters.sqlite.rollups import (
    MINUTE_US,
    OLDEST,
    ROLL_UP,
    TRIM_MINUTES,
    TRIM_SERIES,
    TRIM_TICKS,
    minute_start,
)
from pulse_adapters.sqlite.vitals_file import (
    SAMPLE_COLUMNS,
    TICK_COLUMNS,
    loss,
    open_vitals,
    readable,
    sample_of,
    sample_row,
    tick_of,
    tick_row,
)
from pulse_core.model.batches import in_batches
from pulse_core.model.json_types import Json
from pulse_core.model.moment import Moment
from pulse_core.model.tick import TickRecord
from pulse_core.model.vitals import Sample, Trimmed

QUEUED = 10_000
"""Most samples, and most tick records, that wait for a disk that does not take them."""

BATCH_CHARS, BATCH_ROWS = 128 * 1024, 500
"""Of one statement: its JSON text is made in the loop, and by the chars of 128 KiB that takes about a millisecond."""
SLICE = 500
"""Freed pages that go back to the disk at a time: a few milliseconds, for which others wait."""


class SqliteVitals:
    """`Vitals` on SQLite; made by `open`. `dropped` counts what was lost on the way to the disk.

    set_aside: why the file that was there could not be used, in words; empty if it could.
    """

    def __init__(self, connection: ThreadConnection, last_id: int, set_aside: str = "") -> None:
        self.dropped, self.set_aside, self.trouble = 0, set_aside, ""
        self._connection = connection
        self._last_id = last_id
        self._samples: deque[Sample] = deque(maxlen=QUEUED)
        self._ticks: deque[TickRecord] = deque(maxlen=QUEUED)
        self._writing = asyncio.Lock()
        self._error = ""

    @classmethod
    @asynccontextmanager
    async def open(cls, path: Path) -> AsyncIterator["SqliteVitals"]:
        """The vitals at `path`; a file that cannot be used is set aside and a new one begun."""
        async with connect_in_thread(lambda: open_vitals(path)) as (connection, (last_id, set_aside)):
            vitals = cls(connection, last_id, set_aside)
            try:
                yield vitals
            finally:
                await vitals.flush()

    def sample(self, key: str, moment: Moment, data: Mapping[str, Json]) -> Sample:
        # By its time, where neither an older file nor a lost end of this one can have been: an id in the log must not come
        # to mean another sample.
        self._last_id = max(self._last_id + 1, moment.at)
        sample = Sample(self._last_id, key, moment, data)
        self.dropped += len(self._samples) == QUEUED
        self._samples.append(sample)
        return sample

    def record(self, tick: TickRecord) -> None:
        self.dropped += len(self._ticks) == QUEUED
        self._ticks.append(tick)

    async def flush(self) -> None:
        if not (self._samples or self._ticks or self._writing.locked()):
            return  # as in most rounds of an idle daemon
        async with self._writing:
            samples = [self._samples.popleft() for _ in range(len(self._samples))]
            ticks = [self._ticks.popleft() for _ in range(len(self._ticks))]
            if samples or ticks:
                self.trouble = await self._connection.run(loss)
            await self._write("sample", SAMPLE_COLUMNS, map(sample_row, samples))
            await self._write("tick", TICK_COLUMNS, map(tick_row, ticks))

    def forget(self) -> None:
        self._samples.clear()
        self._ticks.clear()

    async def samples(self, ids: Sequence[int]) -> Sequence[Sample]:
        where = "WHERE id IN (SELECT value FROM json_each(?)) ORDER BY id"
        return await self._samples_where(where, json.dumps(list(ids)))

    async def recent(self, after: int) -> Sequence[Sample]:
        return await self._samples_where("WHERE at > ? ORDER BY id", after)

    async def newest(self, key: str, field: str) -> Sample | None:
        data = "CASE WHEN json_valid(data) THEN data ELSE 'null' END"  # one may have been altered on the disk
        has = f"EXISTS (SELECT 1 FROM json_each({data}) AS field WHERE field.key = ?)"
        found = await self._samples_where(
            f"WHERE sample.key = ? AND {has} ORDER BY id DESC LIMIT 1", key, field
        )
        return found[0] if found else None

    async def ticks(self, last: int) -> Sequence[TickRecord]:
        rows = await self._read(f"SELECT {TICK_COLUMNS} FROM tick ORDER BY tick DESC LIMIT ?", last)
        return list(readable(tick_of, reversed(rows)))

    async def trim(self, before_at: int, minutes_before: int = 0) -> Trimmed:
        """In small steps, each whole or not at all, between which others get their turn."""
        await self.flush()
        samples = await _counted(self._roll_up(minute_start(before_at)))
        ticks = await _counted(self._delete(TRIM_TICKS, before_at, minutes_before, before_at))
        minutes = await _counted(self._delete(TRIM_MINUTES, minutes_before // MINUTE_US))
        series = await _counted(self._delete(TRIM_SERIES))
        refused = {error: None for _, error in (samples, ticks, minutes, series) if error}
        fault = f"vitals.db: {', '.join(refused)}" if refused else ""
        return Trimmed(samples[0], ticks[0], minutes[0], fault)

    async def _roll_up(self, before: int) -> AsyncIterator[int]:
        """Roll up and forget the samples before a minute's beginning; how many, step by step.

        Those whose values can't be rolled up go all the same, and that is raised at the end: else the file would grow for
        ever. A disk that refuses may take them later, so nothing goes meanwhile.
        """
        lost: sqlite3.Error | None = None
        while (
            oldest := next(iter(await self._connection.execute_fetchall(OLDEST, (before,))))[0]
        ) is not None:
            upto = min(minute_start(oldest) + MINUTE_US, before)
            try:
                gone = await self._together(ROLL_UP, upto)
            except sqlite3.Error as error:
                if not is_of_values(error):
                    raise
                lost, gone = error, await self._together(ROLL_UP[-1:], upto)
            yield gone
        if lost:
            raise lost

    async def _delete(self, sql: str, *before: int) -> AsyncIterator[int]:
        """Delete in steps; how many rows, step by step."""
        while gone := await self._together((sql,), *before):
            yield gone

    async def _together(self, statements: Sequence[str], *values: int) -> int:
        """Carry out the statements in one transaction; the rows that the last one changed. Raises if it is refused."""

        def work(connection: sqlite3.Connection) -> int:
            """In the connection's thread as a whole: who is cancelled between two parts would leave it open."""
            connection.execute("BEGIN IMMEDIATE")
            try:
                for sql in statements:
                    changed = connection.execute(sql, values).rowcount
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise
            return changed

        async with self._writing:
            return await self._connection.run(work)

    async def yield_oldest(self, share: float) -> None:
        """Forget the oldest share of the time that is covered, by samples and by minutes, and give its room back."""
        minutes = await self._after("SELECT min(minute), max(minute) FROM minute", share)
        await self.trim(await self._after("SELECT min(at), max(at) FROM sample", share), minutes * MINUTE_US)
        await self._give_back()

    async def _give_back(self) -> None:
        """Freed pages go back to the disk in slices, between which others write, and so does the log of that."""
        if not await self._number(
            "PRAGMA auto_vacuum"
        ):  # it is of before there were slices: once, as a whole
            await self._script("PRAGMA auto_vacuum = INCREMENTAL; VACUUM")
        for _ in range(0, await self._number("PRAGMA freelist_count"), SLICE):
            await self._script(f"PRAGMA incremental_vacuum({SLICE})")
        await self._quietly("PRAGMA wal_checkpoint(TRUNCATE)", ())

    async def _number(self, sql: str) -> int:
        """The one number that is asked for; 0 if the file does not serve."""
        found = await self._quietly(sql, ())
        return int(found[0][0]) if found else 0

    async def _script(self, sql: str) -> None:
        """Carry out to the end what is no query, in no transaction of others; nothing if it is refused."""
        async with self._writing:
            with suppress(sqlite3.Error):
                async with self._connection.executescript(sql):
                    pass

    async def _after(self, span: str, share: float) -> int:
        """Where this share of a span ends."""
        found = await self._quietly(span, ())
        first, last = found[0] if found and found[0][0] is not None else (0, 0)
        return round(first + (last - first) * share)

    async def _write(self, table: str, columns: str, rows: Iterable[tuple[Any, ...]]) -> None:
        """One statement for many rows: they travel as one JSON text, which must not take long to make."""
        fields = ", ".join(f"json_extract(value, '$[{place}]')" for place in range(columns.count(",") + 1))
        sql = f"INSERT OR REPLACE INTO {table} ({columns}) SELECT {fields} FROM json_each(?)"
        for batch in in_batches(rows, BATCH_ROWS, _characters, BATCH_CHARS):
            if await self._quietly(sql, (json.dumps(batch, default=str),)) is None:
                self.dropped += len(batch)
                self.trouble = f"samples can't be written, and are lost: {self._error}"

    async def _samples_where(self, where: str, *values: Any) -> list[Sample]:
        rows = await self._read(f"SELECT {SAMPLE_COLUMNS} FROM sample {where}", *values)
        return list(readable(sample_of, rows))

    async def _read(self, sql: str, *values: Any) -> list[Any]:
        await self.flush()
        return await self._quietly(sql, values) or []

    async def _quietly(self, sql: str, values: Iterable[Any]) -> list[Any] | None:
        """The rows, or None if the file does not serve: vitals may be lost, the daemon may not stop for them."""
        try:
            return list(await self._connection.execute_fetchall(sql, values))
        except sqlite3.Error as error:
            self._error = str(error)
            return None


async def _counted(steps: AsyncIterator[int]) -> tuple[int, str]:
    """The sum of what the steps say, and the error that ended them, if one did."""
    gone = 0
    try:
        async for step in steps:
            gone += step
    except sqlite3.Error as error:
        return gone, str(error)
    return gone, ""


def _characters(row: tuple[Any, ...]) -> int:
    return sum(len(value) for value in row if isinstance(value, str))
