"""Which rows may be without data: those that a later `event-redacted` names, with the hash of what was there."""

import json
import sqlite3
from typing import Any, NamedTuple

from pulse_adapters.sqlite.errors import is_corrupt

KIND = "event-redacted"

EMPTY = "UPDATE event SET data = NULL WHERE id = ? AND data IS NOT NULL"
"""Empties the row that an `event-redacted` names; the trigger allows it only after that."""

EMPTY_ALL = f"""UPDATE event SET data = NULL
    WHERE data IS NOT NULL AND id IN (SELECT subject FROM event WHERE +kind = '{KIND}')"""
"""Empties all rows that were redacted: a backup of before has them whole."""

SAID = f"""SELECT 1 FROM event AS emptied JOIN event AS said {{}} ON said.subject = emptied.id AND said.seq > emptied.seq
    WHERE emptied.seq = ? AND said.kind = '{KIND}' AND instr(said.data, lower(hex(emptied.data_sha256)))"""
"""Finds something if a row was redacted; with `NOT INDEXED` in its braces, whatever became of the index."""

_SAID = f"SELECT seq, subject, data FROM event NOT INDEXED WHERE seq > ? AND seq <= ? AND kind = '{KIND}'"


class _Said(NamedTuple):
    seq: int
    sha256: str


class Redactions:
    """Called with a row of ALL_COLUMNS without data: whether it may be so. Reads the log once, and then what is new.

    It doesn't trust the index of subjects, which may be damaged as the row may be.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection, self._seq = connection, 0
        self._of: dict[str, list[_Said]] = {}
        self._unread: sqlite3.DatabaseError | None = None

    def __call__(self, row: tuple[Any, ...]) -> bool:
        return self.said_in(row) > 0

    def said_in(self, row: tuple[Any, ...]) -> int:
        """The row that says so; 0 if none does. Raises sqlite3.DatabaseError if that may be one that can't be read."""
        self._advance()
        for said in self._of.get(row[1], ()):
            if said.seq > row[0] and said.sha256 == row[11].hex():
                return said.seq
        if self._unread:
            raise self._unread
        return 0

    def _advance(self) -> None:
        head = self._connection.execute("SELECT coalesce(max(seq), 0) FROM event").fetchone()[0]
        self._take(self._seq, head)
        self._seq = head

    def _take(self, after: int, upto: int) -> None:
        """Take what is said after one row, up to another; of rows that can't be read together what each half says."""
        try:
            rows = self._connection.execute(_SAID, (after, upto)).fetchall()
        except sqlite3.DatabaseError as error:
            if not is_corrupt(error):
                raise
            half = (after + upto) // 2
            if half == after:
                self._unread = error
            else:
                self._take(after, half)
                self._take(half, upto)
            return
        for seq, subject, data in rows:
            try:
                self._of.setdefault(subject, []).append(_Said(seq, str(json.loads(data)["sha256"])))
            except (ValueError, LookupError, TypeError):
                continue  # altered: the row that it named is found, as is this one
