"""Reads the whole log and names the first row that is not what was written; works beside a running daemon."""

import sqlite3
import time
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from pulse_adapters.sqlite.chain import ALL_COLUMNS, START, first_fault
from pulse_adapters.sqlite.connect import connect_readonly, host_of, refuse_altered_wal, refuse_damage
from pulse_adapters.sqlite.errors import code, is_corrupt
from pulse_adapters.sqlite.event_reader import translate_read_error
from pulse_adapters.sqlite.last_write import last_row_noted
from pulse_adapters.sqlite.migrate import format_of, steps
from pulse_adapters.sqlite.payloads import LostPayload, is_reference, payload_in
from pulse_adapters.sqlite.redactions import Redactions
from pulse_core.model.errors import Damaged, NoHome
from pulse_core.model.text import count

_BATCH = 1_000
_CHECK_CACHE = 32_768
"""KiB: each row is looked up in each index."""
INDEX_FAULT = "an index of the log does not agree with its rows, which are good"
"""How the fault begins that `REINDEX` mends."""


class VerifyResult(NamedTuple):
    """How many rows are good from the first on, what is wrong after them (nothing: empty), milliseconds.

    is_accepted: a person had accepted the damage; fits_itself: the rows fit each other, but not what others know of
    them; notes: what else there is to say; anchored: the last row that each anchor file knew.
    """

    rows: int
    fault: str
    took_ms: int
    is_accepted: bool = False
    fits_itself: bool = False
    notes: tuple[str, ...] = ()
    anchored: Mapping[str, int] = MappingProxyType({})


def verify(path: Path, objects: Path, *, expect: tuple[int, bytes] | None = None) -> VerifyResult:
    """The verdict on a log and the objects it names. Takes seconds a million rows: not for the event loop.

    expect: a row and its chain value known from elsewhere (a checkpoint, a tick record), which shows a log
    that was cut short. Raises NoHome if there is no log, LogUnavailable if it cannot be read.
    """
    started = time.monotonic()
    try:
        refuse_damage(path)
        refuse_altered_wal(path)
        if not path.exists():
            raise NoHome(str(path.parent))
        noted = last_row_noted(path)  # before the rows are read, which may become more meanwhile
        with closing(connect_readonly(path)) as connection:
            walk = LogWalk(connection, objects)
            fault = (
                walk.to_end()
                or _short_of(walk, (noted, b""))
                or _short_of(walk, expect)
                or _database_fault(connection)
            )
            rows = walk.seq
    except Damaged as damage:
        rows, fault = 0, str(damage)
    except sqlite3.Error as error:
        if (
            not is_corrupt(error) and code(error) != sqlite3.SQLITE_ERROR
        ):  # no such column: the schema is not ours
            raise translate_read_error(error, path) from error
        rows, fault = 0, f"the database cannot be read: {error}"
    return VerifyResult(rows, fault, round((time.monotonic() - started) * 1000))


class LogWalk:
    """The sound rows after `head` in batches that hold no snapshot meanwhile; then `fault` says what is wrong with the next.

    A row is sound if it continues the chain and its payload is there.
    """

    def __init__(
        self, connection: sqlite3.Connection, objects: Path, head: tuple[int, bytes] = (0, START)
    ) -> None:
        self.seq, self._chain = head
        self.fault = ""
        self.error: sqlite3.DatabaseError | None = None
        self.connection, self._objects = connection, objects
        self._redactions = Redactions(connection)
        connection.text_factory = lambda raw: raw.decode("utf-8", "surrogateescape")

    def __iter__(self) -> Iterator[list[Any]]:
        sql = f"SELECT {ALL_COLUMNS} FROM event WHERE seq > ? ORDER BY seq LIMIT ?"
        count = _BATCH
        while not self.fault:
            try:
                sound = self._sound(self.connection.execute(sql, (self.seq, count)).fetchall())
            except sqlite3.DatabaseError as error:
                if count > 1:  # those before it can be
                    count = 1
                    continue
                self.error = error
                self.fault = f"row {self.seq + 1} or one soon after it can't be read: {error}"
                return
            if not sound:
                return
            self.seq, self._chain = sound[-1][0], sound[-1][12]
            yield sound

    def _sound(self, batch: list[Any]) -> list[Any]:
        good, self.fault = first_fault(batch, self.seq, self._chain, self._redactions)
        for place, row in enumerate(batch[:good]):
            if is_reference(row[10]):
                try:
                    payload_in(self._objects, row[10])
                except LostPayload as lost:
                    self.fault = f"the payload of row {row[0]} is lost: {lost}"
                    return batch[:place]
        return batch[:good]

    def to_end(self) -> str:
        """Walk as far as the rows are sound; what is wrong then. An error of SQLite that is no damage is raised."""
        for _ in self:
            pass
        if self.error and not is_corrupt(self.error):
            raise self.error
        return self.fault


def _short_of(walk: LogWalk, expect: tuple[int, bytes] | None) -> str:
    """Whether the log ends before a row that is known to have been there, or has another one there."""
    if expect is None or expect[0] == 0:
        return ""
    if expect[0] > walk.seq:
        return f"row {walk.seq + 1} is missing: the log once had {count(expect[0], 'row')}"
    if not expect[1]:
        return ""
    row = walk.connection.execute("SELECT chain FROM event WHERE seq = ?", expect[:1]).fetchone()
    return "" if row[0] == expect[1] else f"row {expect[0]} is not the one that was recorded"


def _database_fault(connection: sqlite3.Connection) -> str:
    """Whether a table, an index or a trigger is not as the migrations made it, a page is damaged, or an index is wrong.

    An index is compared with the rows: one that lacks some makes queries find nothing, and say nothing of it.
    """
    known = steps()[: format_of(connection)]
    with closing(sqlite3.connect(":memory:")) as with_all:
        for _, sql in known:
            with_all.executescript(sql)
        wanted = _schema(with_all)
    there = _schema(connection)
    odd = sorted(name for name in wanted.keys() | there.keys() if wanted.get(name) != there.get(name))
    if odd:
        return f"the database's {', '.join(odd)} is not as Pulse made it"
    last = connection.execute("SELECT host FROM event ORDER BY seq DESC LIMIT 1").fetchone()
    if last and (own := host_of(connection)) != last[0]:
        return f"the home's id is {own!r}, its last row has {last[0]!r}"
    connection.execute(f"PRAGMA cache_size = -{_CHECK_CACHE}")
    said = connection.execute("PRAGMA integrity_check(1)").fetchone()[0]
    if said == "ok":
        return ""
    return f"{INDEX_FAULT}: {said}" if " index " in said else f"the database's pages are damaged: {said}"


def _schema(connection: sqlite3.Connection) -> dict[str, str]:
    rows = connection.execute("SELECT name, sql FROM sqlite_schema WHERE name NOT LIKE 'sqlite_stat%'")
    return {str(name): str(sql) for name, sql in rows}
