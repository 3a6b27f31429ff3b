"""Vitals for the command line: synchronous, read-only, quick to import; without vitals there is nothing to see."""

import json
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

from pulse_adapters.sqlite.connect import connect_readonly
from pulse_adapters.sqlite.vitals_file import SAMPLE_COLUMNS, TICK_COLUMNS


class SampleRow(NamedTuple):
    """A sample; `data` is decoded."""

    id: int
    key: str
    at: int
    boot: str
    mono: int
    data: dict[str, Any]


class TickRow(NamedTuple):
    """A tick record; `chain` in hex, layers as (rule, outcome, notes, took_us)."""

    tick: int
    at: int
    boot: str
    mono: int
    woken_by: str
    seq: int
    chain: str
    samples: list[int]
    settings: str
    version: str
    layers: list[list[Any]]
    effects: list[str]
    tick_ms: int
    took_us: int
    snapshot: str | None


class VitalsReader:
    """Reads `vitals.db` of a home; a missing or unusable file reads as empty. `with` closes it."""

    def __init__(self, home: Path) -> None:
        self._connection: sqlite3.Connection | None = None
        try:
            self._connection = connect_readonly(home / "vitals.db")
        except sqlite3.Error:
            return

    def __enter__(self) -> "VitalsReader":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the file."""
        if self._connection:
            self._connection.close()

    def last_samples(self) -> list[SampleRow]:
        """The newest sample of each key, by key."""
        # One index seek a key: a plain GROUP BY would read all samples.
        keys = (
            "WITH RECURSIVE keys(key) AS (SELECT min(key) FROM sample UNION ALL"
            " SELECT (SELECT min(key) FROM sample WHERE key > keys.key) FROM keys WHERE keys.key IS NOT NULL)"
        )
        newest = "SELECT (SELECT max(id) FROM sample WHERE sample.key = keys.key) FROM keys"
        return self._samples(
            f"{keys} SELECT {SAMPLE_COLUMNS} FROM sample WHERE id IN ({newest}) ORDER BY key"
        )

    def samples(self, ids: Sequence[int]) -> list[SampleRow]:
        """The samples of these ids that are still there, by id."""
        where = "WHERE id IN (SELECT value FROM json_each(?)) ORDER BY id"
        return self._samples(f"SELECT {SAMPLE_COLUMNS} FROM sample {where}", json.dumps(list(ids)))

    def ticks(self, limit: int) -> list[TickRow]:
        """The last so many ticks, newest first."""
        return self._ticks("ORDER BY tick DESC LIMIT ?", limit)

    def tick(self, number: int) -> TickRow | None:
        """One tick's record, or None if it is not there (any more)."""
        found = self._ticks("WHERE tick = ?", number)
        return found[0] if found else None

    def tick_count(self) -> int:
        """The last tick's number."""
        rows = self._rows("SELECT coalesce(max(tick), 0) FROM tick")
        return int(rows[0][0]) if rows else 0

    def _samples(self, sql: str, *values: Any) -> list[SampleRow]:
        return [SampleRow._make((*row[:5], json.loads(row[5]))) for row in self._rows(sql, *values)]

    def _ticks(self, where: str, value: int) -> list[TickRow]:
        rows = self._rows(f"SELECT {TICK_COLUMNS} FROM tick {where}", value)
        fields = (TickRow._fields.index(name) for name in ("samples", "layers", "effects"))
        decoded = set(fields)
        return [
            TickRow._make(json.loads(value) if place in decoded else value for place, value in enumerate(row))
            for row in rows
        ]

    def _rows(self, sql: str, *values: Any) -> list[Any]:
        try:
            return self._connection.execute(sql, values).fetchall() if self._connection else []
        except sqlite3.Error:
            return []
