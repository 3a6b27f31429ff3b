"""Reads the whole log and names the first row that is not what was written; works beside a running daemon."""

import hashlib
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from pulse_adapters.sqlite.chain import ALL_COLUMNS, START, first_fault
from pulse_adapters.sqlite.connect import connect_readonly, refuse_damage
from pulse_adapters.sqlite.errors import is_corrupt, translate_error
from pulse_adapters.sqlite.migrate import format_of, steps
from pulse_adapters.sqlite.references import is_reference, object_path, referenced_object
from pulse_core.model.errors import Damaged, NoHome

_BATCH = 1_000


class VerifyResult(NamedTuple):
    """How many rows are good from the first on, what is wrong after them (nothing: empty), milliseconds."""

    rows: int
    fault: str
    took_ms: int


class ObjectFault(Exception):
    """A payload that lies in the objects is missing there, or altered."""


def verify(path: Path, objects: Path, *, expect: tuple[int, bytes] | None = None) -> VerifyResult:
    """The verdict on a log and the objects it names. Takes seconds a million rows: not for the event loop.

    expect: a row and its chain value known from elsewhere (a checkpoint, a tick record), which shows a log
    that was cut short. Raises NoHome if there is no log, LogUnavailable if it cannot be read.
    """
    if not path.exists():
        raise NoHome(str(path.parent))
    started = time.monotonic()
    try:
        refuse_damage(path)
    except Damaged as damage:
        return VerifyResult(0, str(damage), round((time.monotonic() - started) * 1000))
    try:
        rows, fault = _verify(path, objects, expect)
    except sqlite3.Error as error:
        if not is_corrupt(error):
            raise translate_error(error, path) from error
        rows, fault = 0, f"the database cannot be read: {error}"
    return VerifyResult(rows, fault, round((time.monotonic() - started) * 1000))


def _verify(path: Path, objects: Path, expect: tuple[int, bytes] | None) -> tuple[int, str]:
    connection = connect_readonly(path)
    connection.text_factory = lambda raw: raw.decode("utf-8", "surrogateescape")
    try:
        walk = Walk(connection, objects)
        fault = walk.fault() or walk.short_of(expect) or _schema_fault(connection) or _page_fault(connection)
        return walk.good, fault
    finally:
        connection.close()


class Walk:
    """One pass over all rows, in batches that hold no snapshot while Python computes."""

    def __init__(self, connection: sqlite3.Connection, objects: Path) -> None:
        self.good = 0
        self._chain = START
        self._connection = connection
        self._objects = objects

    def fault(self) -> str:
        """What is wrong with the first bad row, or nothing."""
        try:
            while batch := self._batch():
                good, fault = first_fault(self._with_objects(batch), self.good, self._chain)
                self.good += good
                if fault:
                    return fault
                self._chain = batch[-1][12]
        except ObjectFault as error:
            return str(error)
        except sqlite3.DatabaseError as error:
            if not is_corrupt(error):
                raise
            return f"row {self.good + 1} or one soon after it cannot be read: {error}"
        return ""

    def short_of(self, expect: tuple[int, bytes] | None) -> str:
        """Whether the log ends before a row that is known to have been there, or has another one there."""
        if expect is None or expect[0] == 0:
            return ""
        if expect[0] > self.good:
            return f"row {self.good + 1} is missing: the log once had {expect[0]} rows"
        row = self._connection.execute("SELECT chain FROM event WHERE seq = ?", expect[:1]).fetchone()
        return "" if row[0] == expect[1] else f"row {expect[0]} is not the one that was recorded"

    def _batch(self) -> list[tuple[Any, ...]]:
        sql = f"SELECT {ALL_COLUMNS} FROM event WHERE seq > ? ORDER BY seq LIMIT {_BATCH}"
        return self._connection.execute(sql, (self.good,)).fetchall()

    def _with_objects(self, batch: list[tuple[Any, ...]]) -> Iterator[tuple[Any, ...]]:
        for row in batch:
            yield row
            # Asked for the next row, the walk has found this one good, so its reference can be believed.
            if is_reference(row[10]) and (fault := _object_fault(self._objects, referenced_object(row[10]))):
                self.good = row[0] - 1
                raise ObjectFault(f"the payload of row {row[0]} {fault}")


def _object_fault(directory: Path, name: str) -> str:
    try:
        with object_path(directory, name).open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        return f"is missing from {directory} ({error.strerror})"
    return "" if digest == name else f"was altered in {directory}"


def _schema_fault(connection: sqlite3.Connection) -> str:
    """Whether a table, an index or a trigger that forbids changes is not as the migrations made it."""
    known = steps()[: format_of(connection)]
    with_all = sqlite3.connect(":memory:")
    try:
        for _, sql in known:
            with_all.executescript(sql)
        wanted = _schema(with_all)
    finally:
        with_all.close()
    there = _schema(connection)
    odd = sorted(name for name in wanted.keys() | there.keys() if wanted.get(name) != there.get(name))
    return f"the database's {', '.join(odd)} is not as Pulse made it" if odd else ""


def _schema(connection: sqlite3.Connection) -> dict[str, str]:
    rows = connection.execute("SELECT name, sql FROM sqlite_schema WHERE name NOT LIKE 'sqlite_stat%'")
    return {str(name): str(sql) for name, sql in rows}


def _page_fault(connection: sqlite3.Connection) -> str:
    said = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
    return "" if said == "ok" else f"the database's pages are damaged: {said}"
