"""Reads events.db beside a running daemon or without one: synchronous, read-only, quick to import."""

import json
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from pulse_adapters.sqlite.chain import ALL_COLUMNS, START
from pulse_adapters.sqlite.connect import HOST, connect_readonly, refuse_damage
from pulse_adapters.sqlite.errors import is_corrupt, translate_error
from pulse_adapters.sqlite.payloads import LostPayload, is_reference, payload_in
from pulse_adapters.sqlite.redactions import Redactions
from pulse_core.model.errors import Ambiguous, LogUnavailable, NoHome, PulseError, UnknownName
from pulse_core.model.event import Event, Head
from pulse_core.model.short_ids import CUT
from pulse_core.model.stored_data import REDACTED, damage_marker
from pulse_core.ports.readers import ALL_EVENTS, EventQuery

_BATCH = 1_000
_UNINDEXED = "event NOT INDEXED"
_ROW = f"{ALL_COLUMNS}, json_valid(data)"
_ALTERED = (
    "what it said can't be read, it was altered on the disk; see upulse verify, and restore it from a backup"
)
_EMPTIED = (
    "what it said is gone, and no event-redacted names it; see upulse verify, and restore it from a backup"
)


class SqliteEventReader:
    """`EventReader` on `events.db` and `objects/` of a home. `with` closes it; raises NoHome if there is no log."""

    def __init__(self, home: Path) -> None:
        self._path = home / "events.db"
        self._objects = home / "objects"
        try:
            refuse_damage(self._path)
            if not self._path.exists():
                raise NoHome(str(home))
            self._connection = connect_readonly(self._path)
        except sqlite3.Error as error:
            raise translate_read_error(error, self._path) from error
        self._may_be_empty = Redactions(self._connection)
        self._has_whole_index: bool | None = None

    def __enter__(self) -> "SqliteEventReader":
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def host(self) -> str:
        """The id of the home whose log it is; empty for one that was never opened for writing."""
        rows = self._rows(HOST, ())
        return str(rows[0][0]) if rows else ""

    def head(self) -> Head:
        rows = self._rows("SELECT seq, chain FROM event ORDER BY seq DESC LIMIT 1", ())
        return Head(*rows[0]) if rows else Head()

    def chain_at(self, seq: int) -> bytes | None:
        rows = self._rows("SELECT chain FROM event WHERE seq = ?", (seq,)) if seq else [(START,)]
        return rows[0][0] if rows else None

    def events(
        self, query: EventQuery = ALL_EVENTS, *, limit: int | None = None, newest_first: bool = False
    ) -> Iterator[Event]:
        """Reads in batches that hold no snapshot of the file between them."""
        where, values, source = "", list[Any](), "event"
        if query.since_at is not None:
            where, values = " AND at >= ?", [query.since_at]
        if query.kinds:  # never choose an index, which would be slower than the scan
            where += f" AND +kind IN ({','.join('?' * len(query.kinds))})"
            values += query.kinds
        if query.subject is not None:
            where += " AND subject = ?"
            values.append(query.subject)
            source = "event" if self._is_index_complete() else _UNINDEXED
        order = "DESC" if newest_first else "ASC"
        low, high = query.since_seq, (1 << 63) - 1
        left = limit if limit is not None else high
        # "There is nothing about it" is not said by the index alone.
        is_doubtful = query.subject is not None and not query.kinds and query.since_at is None
        while left > 0:
            count = min(left, _BATCH)
            sql = f"SELECT {_ROW} FROM {source} WHERE seq > ? AND seq < ?{where} ORDER BY seq {order} LIMIT ?"
            rows = self._rows(sql, (low, high, *values, count))
            if is_doubtful and not rows and source != _UNINDEXED:
                source = _UNINDEXED
                continue
            is_doubtful = False
            yield from map(self._whole, rows)
            if len(rows) < count:
                return
            left -= count
            low, high = (low, rows[-1][0]) if newest_first else (rows[-1][0], high)

    def last_before(self, at: int) -> Event | None:
        """Found by bisection, as time goes on with the rows; where the clock was set back, it is one that fits."""
        low, high = 0, self.head().seq
        while low < high:
            middle = (low + high + 1) // 2
            rows = self._rows("SELECT at FROM event WHERE seq = ?", (middle,))
            if rows and rows[0][0] <= at:
                low = middle
            else:
                high = middle - 1
        return next(self.events(EventQuery(since_seq=low - 1), limit=1), None) if low else None

    def event(self, name: str) -> Event:
        sql, bounds = "SELECT {} FROM {} WHERE id >= ? AND id < ? ORDER BY id LIMIT 4", (name, name + "\x7f")
        rows = self._rows(sql.format(_ROW, "event"), bounds) if name else []
        if (end := name.removeprefix(CUT)) and end != name:
            rows = self._rows(f"SELECT {_ROW} FROM event WHERE substr(id, ?) = ? LIMIT 4", (-len(end), end))
        elif name and not rows:  # it may be the index that lacks it
            rows = self._rows(sql.format(_ROW, _UNINDEXED), bounds)
        exact = [row for row in rows if row[1] == name]
        if not rows:
            raise UnknownName("event", name, ())
        if len(rows) > 1 and not exact:
            raise Ambiguous("event", name, [row[1] for row in rows])
        return self._whole((exact or rows)[0])

    def _is_index_complete(self) -> bool:
        """Whether the index of subjects has as many entries as there are rows; looked at once, in a thousandth of a scan."""
        if self._has_whole_index is None:
            count = "SELECT count(*) FROM event INDEXED BY event_subject WHERE subject >= ''"
            sql = f"SELECT ({count}), (SELECT max(seq) FROM event) - (SELECT min(seq) FROM event) + 1"
            try:
                [(entries, rows)] = self._connection.execute(sql).fetchall()
                self._has_whole_index = entries == (rows or 0)
            except sqlite3.DatabaseError:
                self._has_whole_index = False
        return self._has_whole_index

    def _rows(self, sql: str, values: Sequence[Any]) -> list[Any]:
        try:
            return self._connection.execute(sql, values).fetchall()
        except sqlite3.Error as error:
            if "decode" in str(error) and self._connection.text_factory is str:
                # Bytes that are no text as `\x` and two digits, which is no JSON; slower, so only once it is needed.
                self._connection.text_factory = lambda raw: raw.decode(errors="backslashreplace")
                return self._rows(sql, values)
            raise translate_read_error(error, self._path) from error

    def _whole(self, row: tuple[Any, ...]) -> Event:
        event = Event._make(row[:11])
        if row[10] is None:
            try:
                is_said = self._may_be_empty(row)
            except sqlite3.Error as error:
                raise translate_read_error(error, self._path) from error
            return event._replace(data=REDACTED if is_said else damage_marker(_EMPTIED))
        is_doubtful = not row[13] or self._connection.text_factory is not str
        if is_doubtful and not _is_json(event.data):
            return event._replace(data=damage_marker(_ALTERED))
        if not is_reference(event.data):
            return event
        try:
            return event._replace(data=payload_in(self._objects, event.data))
        except LostPayload as lost:  # the row says so, and the others are read
            return event._replace(
                data=damage_marker(f"its payload is lost: {lost}; restore it from a backup")
            )


def _is_json(text: str) -> bool:
    """Whether Python reads it as JSON, which takes a little more than SQLite does."""
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def translate_read_error(error: sqlite3.Error, path: Path) -> PulseError:
    """What SQLite said to a reader, as an error that a person can act on."""
    if is_corrupt(error):
        return translate_error(error, path)
    return LogUnavailable(
        f"{path} can't be read ({error}); look at its permissions, its directory and the disk"
    )
