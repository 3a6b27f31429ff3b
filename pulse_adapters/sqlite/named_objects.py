"""Which objects are still named, by rows of the log or by ticks; whatever is in doubt counts as named."""

import json
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from hashlib import file_digest, sha256
from pathlib import Path
from typing import Any

from pulse_adapters.sqlite.connect import connect_readonly
from pulse_adapters.sqlite.errors import translate_error
from pulse_adapters.sqlite.payloads import MARK, is_object_name, object_path, referenced_object
from pulse_adapters.sqlite.rollups import MINUTE_US, OLD_TICKS, UNNAMED, minute_start
from pulse_adapters.workers.plain_file import open_plain
from pulse_core.home import HomeLayout
from pulse_core.model.errors import Damaged, LogUnavailable

BATCH = 50_000
"""Rows that are looked at in one query: a reader that holds a snapshot for long keeps the -wal from wrapping."""


class NamedObjects:
    """The objects that rows of the log at `path` refer to. `advance` reads what is new; both are for a thread."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._seq = 0
        self._names: set[bytes] = set()

    def __contains__(self, name: str) -> bool:
        return bytes.fromhex(name) in self._names

    def advance(self) -> None:
        """Go on to the head of the log. Raises Damaged if a reference is not what was recorded."""
        if not self._path.exists():
            raise LogUnavailable(f"{self._path} is not there, so nobody can tell which objects its rows name")
        try:
            with closing(connect_readonly(self._path)) as connection:
                head = connection.execute("SELECT coalesce(max(seq), 0) FROM event").fetchone()[0]
                while self._seq < head:
                    self._read(connection, min(self._seq + BATCH, head))
        except sqlite3.Error as error:
            raise translate_error(error, self._path) from error

    def _read(self, connection: sqlite3.Connection, upto: int) -> None:
        redacted = "SELECT 1 FROM event WHERE seq > ? AND seq <= ? AND +kind = 'event-redacted' LIMIT 1"
        if self._seq and connection.execute(redacted, (self._seq, upto)).fetchone():
            self._seq, self._names = 0, set()  # a row that named an object may name it no more
            return
        sql = f"SELECT seq, data, data_sha256 FROM event WHERE seq > ? AND seq <= ? AND data GLOB '{MARK}*'"
        for seq, data, digest in connection.execute(sql, (self._seq, upto)).fetchall():
            try:
                if sha256(data.encode()).digest() != digest:
                    raise ValueError("it was altered")
                self._names.add(bytes.fromhex(referenced_object(data)))
            except (ValueError, LookupError, TypeError):
                words = f"the data of row {seq} was altered, so nobody can tell which object it names"
                raise Damaged(f"{self._path}: {words}") from None
        self._seq = upto


def unnamed_by_ticks(path: Path, names: Sequence[str], since: int = 0) -> Sequence[str]:
    """Those of these objects that no tick since then (UTC microseconds) in the vitals at `path` names.

    All of them if there are no vitals; raises LogUnavailable if they can't be read.
    """
    if not path.exists():
        return names
    rows = _rows(path, UNNAMED, json.dumps(list(names)), since)
    return [name for (name,) in rows]


def named_by_ticks(vitals: Path) -> Iterator[str]:
    """The snapshots that ticks in the vitals at this path name; none if they can't be read."""
    if vitals.exists():
        with suppress(sqlite3.Error), closing(connect_readonly(vitals)) as connection:
            rows = connection.execute("SELECT snapshot FROM tick WHERE snapshot IS NOT NULL")
            yield from (name for (name,) in rows if is_object_name(name))


def altered_snapshots(home: HomeLayout) -> Sequence[Path]:
    """The files of those that are not what was stored under their names; one that is missing was never kept."""
    found = list[Path]()
    for name in named_by_ticks(home.vitals):
        path = object_path(home.objects, name)
        try:
            with open(open_plain(path), "rb") as file:
                is_altered = file_digest(file, "sha256").hexdigest() != name
        except OSError as error:
            is_altered = not isinstance(error, FileNotFoundError)
        if is_altered:
            found.append(path)
    return found


def old_vitals(path: Path, before: int, minutes_before: int) -> tuple[int, int, int]:
    """How many samples, ticks and minutes a trim would forget; see `Vitals.trim`."""
    if not path.exists():
        return 0, 0, 0
    counts: tuple[tuple[str, tuple[int, ...]], ...] = (
        ("sample WHERE at < ?", (minute_start(before),)),
        (OLD_TICKS, (before, minutes_before, before)),
        ("minute WHERE minute < ?", (minutes_before // MINUTE_US,)),
    )
    samples, ticks, minutes = (
        _rows(path, f"SELECT count(*) FROM {what}", *values)[0][0] for what, values in counts
    )
    return samples, ticks, minutes


def _rows(path: Path, sql: str, *values: Any) -> list[Any]:
    try:
        with closing(connect_readonly(path)) as connection:
            return connection.execute(sql, values).fetchall()
    except sqlite3.Error as error:
        raise LogUnavailable(f"{path} can't be read ({error}), so what is in it stays") from error
