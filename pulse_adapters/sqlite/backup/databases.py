"""Copies of databases that somebody else is writing, and whether such a copy is sound."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from pulse_adapters.sqlite.chain import ALL_COLUMNS, START, first_fault
from pulse_adapters.sqlite.connect import connect_readonly
from pulse_adapters.sqlite.errors import translate_error
from pulse_adapters.sqlite.migrate import format_of, steps
from pulse_adapters.sqlite.payloads import lost_payloads
from pulse_adapters.sqlite.verify import verify
from pulse_core.model.errors import Damaged, NewerFormat

PAGES = 1_000
Told = Callable[[int, int], None]
"""Is told how many steps are done, and of how many."""


class Examined(NamedTuple):
    """A sound log: its last row and chain value, the home's id, its format, and the damage that was accepted."""

    seq: int
    chain: bytes
    host: str
    format: int
    accepted: str


def copy_database(source: Path, target: Path, told: Told = lambda done, of: None) -> None:
    """A copy of `source` as it is at this moment, in one file; the source is neither written nor checkpointed.

    Its writer goes on meanwhile; only the -wal is not begun anew until this ends.
    """
    with closing(connect_readonly(source)) as reader, closing(sqlite3.connect(target)) as copy:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM sqlite_schema").fetchone()  # from here on nothing new is seen
        copy.execute("PRAGMA synchronous = OFF")  # whoever wants the copy syncs it as a whole
        reader.backup(copy, pages=PAGES, progress=lambda _, left, all_: told(all_ - left, all_))
    with closing(sqlite3.connect(target)) as copy:
        copy.execute("PRAGMA journal_mode = DELETE")  # one file, also when somebody reads it


def examine(path: Path, objects: Path, expect: tuple[int, bytes] | None = None) -> Examined:
    """Read a whole log with the objects that it names; raises Damaged for what nobody has accepted, NewerFormat.

    expect: a row that is known to have been there, and its chain value.
    """
    verdict = verify(path, objects, expect=expect)
    try:
        with closing(connect_readonly(path)) as connection:
            if (version := format_of(connection)) > len(steps()):
                raise NewerFormat(
                    f"{path} has format {version}, this Pulse knows formats up to {len(steps())}; use the newer Pulse"
                )
            if verdict.fault and (fault := _not_accepted(connection, path, objects, verdict.rows)):
                raise Damaged(f"{path}: {verdict.fault}" + (f"; {fault}" if fault != verdict.fault else ""))
            seq, chain = head_of(connection)
            return Examined(seq, chain, host_of(connection), version, verdict.fault)
    except sqlite3.Error as error:
        raise translate_error(error, path) from error


def head_of(connection: sqlite3.Connection) -> tuple[int, bytes]:
    """The last row's number and chain value; 0 and zeros for an empty log."""
    row = connection.execute("SELECT seq, chain FROM event ORDER BY seq DESC LIMIT 1").fetchone()
    return row or (0, START)


def host_of(connection: sqlite3.Connection) -> str:
    """The id of the home whose log this is; empty for one that was never opened for writing."""
    row = connection.execute("SELECT value FROM meta WHERE key = 'host'").fetchone()
    return str(row[0]) if row else ""


def _not_accepted(connection: sqlite3.Connection, path: Path, objects: Path, good: int) -> str:
    """What is wrong from the row on at which a person last accepted damage; all, if that was not behind `good`."""
    accepted = connection.execute("SELECT max(seq) FROM event WHERE +kind = 'damage-accepted'").fetchone()[0]
    if not accepted or accepted <= good:
        return "nobody has accepted that"
    before = connection.execute("SELECT chain FROM event WHERE seq = ?", (accepted - 1,)).fetchone()
    rows = connection.execute(f"SELECT {ALL_COLUMNS} FROM event WHERE seq >= ? ORDER BY seq", (accepted,))
    _, fault = first_fault(rows, accepted - 1, before[0] if before else START)
    lost = (why for seq, _, why in lost_payloads(path, objects) if seq > accepted)
    return fault or next(lost, "")
