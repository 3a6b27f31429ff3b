"""Vitals for the command line: synchronous, read-only, quick to import; without vitals there is nothing to see."""

import json
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

from pulse_adapters.sqlite.connect import connect_readonly
from pulse_adapters.sqlite.rollups import COURSE, MINUTE_US, MINUTES
from pulse_adapters.sqlite.vitals_file import KNOWS_ENGINES, OLDER_TICK_COLUMNS, SAMPLE_COLUMNS, TICK_COLUMNS


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
    engine: str | None = None


class MinuteRow(NamedTuple):
    """What is kept of one number of a key over a minute, as `pulse_core.model.vitals.Minute` has it."""

    key: str
    field: str
    at: int
    samples: int
    low: float
    mean: float
    high: float
    last: float


class CourseRow(NamedTuple):
    """One number of a key over some minutes; `at` is when they began."""

    field: str
    at: int
    low: float
    mean: float
    high: float


class VitalsReader:
    """Reads `vitals.db` of a home; a missing or unusable file reads as empty. `with` closes it."""

    def __init__(self, home: Path) -> None:
        self._connection: sqlite3.Connection | None = None
        self._knows_engines = False
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

    def between(self, after: int, upto: int, key: str | None = None) -> list[SampleRow]:
        """Samples later than `after` and not later than `upto` (UTC microseconds), oldest first; of one key or all."""
        only = "" if key is None else " AND +key = ?"
        values = (after, upto) if key is None else (after, upto, key)
        return self._samples(
            f"SELECT {SAMPLE_COLUMNS} FROM sample WHERE at > ? AND at <= ?{only} ORDER BY id", *values
        )

    def oldest_sample(self) -> int:
        """When the oldest sample was taken that is still there one by one (UTC microseconds); 0 if there is none."""
        rows = self._rows("SELECT coalesce(min(at), 0) FROM sample")
        return int(rows[0][0]) if rows else 0

    def course(self, key: str, after: int, upto: int, step: int = 1) -> list[CourseRow]:
        """The minutes of a key in that time (UTC microseconds), by field and time, `step` of them together."""
        bounds = (-(-after // MINUTE_US), -(-upto // MINUTE_US))
        rows = self._rows(COURSE, key, *bounds, max(1, step))
        return [CourseRow(field, minute * MINUTE_US, *rest) for field, minute, *rest in rows]

    def senses(self) -> list[str]:
        """The keys of all samples, also of those that are rolled up, in order."""
        older = (key for (key,) in self._rows("SELECT DISTINCT key FROM series"))
        return sorted({*older, *(sample.key for sample in self.last_samples())})

    def minutes(self, key: str, after: int) -> list[MinuteRow]:
        """What older samples of a key were rolled up to, from minutes begun later than `after` (UTC microseconds).

        By time and field; the samples of later minutes are still there one by one.
        """
        rows = self._rows(MINUTES, key, after // MINUTE_US)
        return [MinuteRow._make((*row[:2], row[2] * MINUTE_US, *row[3:])) for row in rows]

    def tick_before(self, at: int) -> TickRow | None:
        """The last tick that was not later than this (UTC microseconds), or None."""
        found = self._ticks("WHERE at <= ? ORDER BY tick DESC LIMIT 1", at)
        return found[0] if found else None

    def snapshot_before(self, at: int) -> str | None:
        """The object that holds the newest kept snapshot not later than this (UTC microseconds), or None."""
        kept = "SELECT max(tick) FROM tick INDEXED BY tick_snapshot WHERE snapshot IS NOT NULL AND at <= ?"
        rows = self._rows(f"SELECT snapshot FROM tick WHERE tick = ({kept})", at)
        return rows[0][0] if rows else None

    def ticks_since(self, at: int) -> list[TickRow]:
        """The ticks later than this (UTC microseconds), oldest first."""
        return self._ticks("WHERE at > ? ORDER BY tick", at)

    def ticks(self, limit: int) -> list[TickRow]:
        """The last so many ticks, newest first."""
        return self._ticks("ORDER BY tick DESC LIMIT ?", limit)

    def ticks_after(self, number: int, limit: int) -> list[TickRow]:
        """At most so many ticks behind this one, oldest first."""
        return self._ticks(f"WHERE tick > ? ORDER BY tick LIMIT {limit}", number)

    def layers_since(self, at: int) -> Iterator[tuple[int, list[list[Any]]]]:
        """What each tick later than this (UTC microseconds) took (microseconds), and its layers, oldest first."""
        before = self._rows("SELECT tick FROM tick WHERE at <= ? ORDER BY tick DESC LIMIT 1", at)
        number = before[0][0] if before else 0
        for took_us, layers in self._rows(
            "SELECT took_us, layers FROM tick WHERE tick > ? ORDER BY tick", number
        ):
            yield took_us, json.loads(layers)

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
        rows = self._rows(f"SELECT {self._tick_columns()} FROM tick {where}", value)
        fields = (TickRow._fields.index(name) for name in ("samples", "layers", "effects"))
        decoded = set(fields)
        return [
            TickRow._make(json.loads(value) if place in decoded else value for place, value in enumerate(row))
            for row in rows
        ]

    def _tick_columns(self) -> str:
        """As the file has them; one that no daemon of this version has opened yet lacks the last."""
        if not self._knows_engines:
            self._knows_engines = bool(self._rows(KNOWS_ENGINES))
        return TICK_COLUMNS if self._knows_engines else OLDER_TICK_COLUMNS

    def _rows(self, sql: str, *values: Any) -> list[Any]:
        try:
            return self._connection.execute(sql, values).fetchall() if self._connection else []
        except sqlite3.Error:
            return []
