"""Reads vitals.db beside a running daemon or without one: synchronous, read-only, quick to import."""

import json
import os
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from pulse_adapters.sqlite.connect import connect_readonly
from pulse_adapters.sqlite.rollups import MINUTE_RANGES, MINUTE_US
from pulse_adapters.sqlite.vitals_file import (
    KNOWS_ENGINES,
    OLDER_TICK_COLUMNS,
    SAMPLE_COLUMNS,
    TICK_COLUMNS,
    layers_of,
    readable,
    sample_of,
    tick_of,
)
from pulse_core.model.tick import LayerOutcome, TickRecord
from pulse_core.model.vitals import MinuteRange, Sample


class SqliteVitalsReader:
    """`VitalsReader` on `vitals.db` of a home; a missing or unusable file reads as empty. `with` closes it."""

    def __init__(self, home: Path) -> None:
        self._connection: sqlite3.Connection | None = None
        self.fault, self._path = "", home / "vitals.db"
        try:
            self._connection = connect_readonly(self._path)
        except sqlite3.Error as error:
            if os.path.lexists(self._path):
                self.fault = self._spelled(error)
        # A file that no daemon of this version has opened yet lacks the last column.
        self._tick_columns = TICK_COLUMNS if self._rows(KNOWS_ENGINES) else OLDER_TICK_COLUMNS

    def __enter__(self) -> "SqliteVitalsReader":
        return self

    def __exit__(self, *_: object) -> None:
        if self._connection:
            self._connection.close()

    def last_samples(self) -> list[Sample]:
        # One index seek a key: a plain GROUP BY would read all samples.
        keys = (
            "WITH RECURSIVE keys(key) AS (SELECT min(key) FROM sample UNION ALL"
            " SELECT (SELECT min(key) FROM sample WHERE key > keys.key) FROM keys WHERE keys.key IS NOT NULL)"
        )
        newest = "SELECT (SELECT max(id) FROM sample WHERE sample.key = keys.key) FROM keys"
        return self._samples(
            f"{keys} SELECT {SAMPLE_COLUMNS} FROM sample WHERE id IN ({newest}) ORDER BY key"
        )

    def samples(self, ids: Sequence[int]) -> list[Sample]:
        where = "WHERE id IN (SELECT value FROM json_each(?)) ORDER BY id"
        return self._samples(f"SELECT {SAMPLE_COLUMNS} FROM sample {where}", json.dumps(list(ids)))

    def between(self, after: int, upto: int, key: str | None = None) -> list[Sample]:
        only = "" if key is None else " AND +key = ?"
        values = (after, upto) if key is None else (after, upto, key)
        return self._samples(
            f"SELECT {SAMPLE_COLUMNS} FROM sample WHERE at > ? AND at <= ?{only} ORDER BY id", *values
        )

    def oldest_sample(self) -> int:
        rows = self._rows("SELECT coalesce(min(at), 0) FROM sample")
        return int(rows[0][0]) if rows else 0

    def minute_ranges(self, key: str, after: int, upto: int, step: int = 1) -> list[MinuteRange]:
        bounds = (-(-after // MINUTE_US), -(-upto // MINUTE_US))
        rows = self._rows(MINUTE_RANGES, key, *bounds, max(1, step))
        return [MinuteRange(field, minute * MINUTE_US, *rest) for field, minute, *rest in rows]

    def sample_keys(self) -> list[str]:
        older = (key for (key,) in self._rows("SELECT DISTINCT key FROM series"))
        return sorted({*older, *(sample.key for sample in self.last_samples())})

    def tick_before(self, at: int) -> TickRecord | None:
        return next(iter(self._ticks("WHERE at <= ? ORDER BY tick DESC LIMIT 1", at)), None)

    def snapshot_before(self, at: int) -> str | None:
        kept = "SELECT max(tick) FROM tick INDEXED BY tick_snapshot WHERE snapshot IS NOT NULL AND at <= ?"
        rows = self._rows(f"SELECT snapshot FROM tick WHERE tick = ({kept})", at)
        return rows[0][0] if rows else None

    def ticks_since(self, at: int) -> list[TickRecord]:
        return self._ticks("WHERE at > ? ORDER BY tick", at)

    def ticks(self, limit: int) -> list[TickRecord]:
        return self._ticks("ORDER BY tick DESC LIMIT ?", limit)

    def ticks_after(self, number: int, limit: int) -> list[TickRecord]:
        return self._ticks(f"WHERE tick > ? ORDER BY tick LIMIT {limit}", number)

    def layers_since(self, at: int) -> Iterator[tuple[int, Sequence[LayerOutcome]]]:
        before = "coalesce((SELECT tick FROM tick WHERE at <= ? ORDER BY tick DESC LIMIT 1), 0)"
        rows = self._rows(f"SELECT took_us, layers FROM tick WHERE tick > {before} ORDER BY tick", at)
        return readable(lambda row: (row[0], layers_of(row[1])), rows)

    def tick(self, number: int) -> TickRecord | None:
        return next(iter(self._ticks("WHERE tick = ?", number)), None)

    def tick_count(self) -> int:
        rows = self._rows("SELECT coalesce(max(tick), 0) FROM tick")
        return int(rows[0][0]) if rows else 0

    def _samples(self, sql: str, *values: Any) -> list[Sample]:
        return list(readable(sample_of, self._rows(sql, *values)))

    def _ticks(self, where: str, value: int) -> list[TickRecord]:
        rows = self._rows(f"SELECT {self._tick_columns} FROM tick {where}", value)
        return list(readable(tick_of, rows))

    def _rows(self, sql: str, *values: Any) -> list[Any]:
        try:
            return self._connection.execute(sql, values).fetchall() if self._connection else []
        except sqlite3.Error as error:
            self.fault = self._spelled(error)
            return []

    def _spelled(self, error: sqlite3.Error) -> str:
        return f"{self._path} can't be read as a whole ({error}); a start of the daemon sets it aside and begins a new one"
