"""Opens events.db for its one writer: looked at before SQLite may touch it, brought up to date, tail checked."""

import sqlite3
import uuid
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from pulse_adapters.sqlite.chain import ALL_COLUMNS, START, first_fault
from pulse_adapters.sqlite.checkpoints import read_checkpoints, read_host
from pulse_adapters.sqlite.connect import (
    connect_readonly,
    head_of,
    host_of,
    make_private,
    open_database,
    read_schema,
    refuse_missing,
    refuse_unfinished,
    refuse_wal_of_another,
)
from pulse_adapters.sqlite.errors import code, is_disk_full, translate_error
from pulse_adapters.sqlite.last_write import (
    last_row_noted,
    last_row_of_any,
    note_boot,
    was_rebooted_since_written,
)
from pulse_adapters.sqlite.migrate import MIGRATIONS, migrate
from pulse_adapters.sqlite.redactions import Redactions
from pulse_adapters.sqlite.reserve import Reserve
from pulse_adapters.sqlite.shared_memory import SharedMemory, refuse_full
from pulse_adapters.sqlite.wal import scan
from pulse_adapters.workers.database_files import files_of
from pulse_adapters.workers.read_only import is_read_only
from pulse_core.home import HomeLayout
from pulse_core.model.errors import Damaged
from pulse_core.model.text import are, count

TAIL = 1_000
"""Rows whose chain is checked at each start; `verify` checks them all."""

_PRAGMAS = (
    "PRAGMA journal_mode = WAL",
    "PRAGMA synchronous = FULL",
    "PRAGMA wal_autocheckpoint = 0",  # SQLite says nothing of one that fails: see Commits
    "PRAGMA recursive_triggers = ON",  # or INSERT OR REPLACE would pass by the delete trigger
    "PRAGMA cache_spill = OFF",  # no frame is ever rewritten in place, so a bad one is never our own doing
    "PRAGMA cell_size_check = ON",
    "PRAGMA secure_delete = ON",  # what was redacted must not lie in a free page
)


class Opening(NamedTuple):
    """How to open: what a person decided, and who it is.

    Only the daemon may bring an older file up to date (`may_migrate`), not a client that holds the lock.
    """

    accept_damage: bool = False
    may_migrate: bool = True
    migrations: Path = MIGRATIONS


class Start(NamedTuple):
    """Where the log stands, whose it is, and words about a torn end that was left away.

    is_read_only: nothing can be appended over this connection, since the file system takes no change, or no new file.
    """

    seq: int
    chain: bytes
    host: str
    torn: str
    is_read_only: bool = False


def open_writer(path: Path, how: Opening, reserve: Reserve | None = None) -> tuple[sqlite3.Connection, Start]:
    """The writer's connection and where the log stands; raises Damaged, NewerFormat or LogUnavailable."""
    refuse_unfinished(path)
    if not how.accept_damage:
        refuse_missing(path)
        refuse_new_log(path)
    torn = "" if how.accept_damage else scan(path, rebooted=was_rebooted_since_written(path)).torn
    if not how.accept_damage:  # after the -shm was asked, which a reader makes anew
        refuse_wal_of_another(path)
    try:
        if not how.accept_damage and path.exists() and is_read_only(files_of(path).database.parent):
            return open_to_read(path, how, torn)
        try:
            opened = _open(path, how, torn)
        except sqlite3.Error as error:
            if not is_disk_full(error) and code(error) != sqlite3.SQLITE_READONLY:
                raise
            opened = _open_where_refused(path, how, torn, reserve)
    except sqlite3.Error as error:
        raise translate_error(error, path) from error
    if reserve:
        reserve.make()
    return opened


def _open_where_refused(
    path: Path, how: Opening, torn: str, reserve: Reserve | None
) -> tuple[sqlite3.Connection, Start]:
    """With the room that was held back; or to read alone, where nothing can be written, or no -wal and -shm be made."""
    if reserve and reserve.free():
        with suppress(sqlite3.OperationalError):
            return _open(path, how, torn)
    if how.accept_damage or not path.exists():
        return _open(path, how, torn)
    return open_to_read(path, how, torn)


def _open(path: Path, how: Opening, torn: str) -> tuple[sqlite3.Connection, Start]:
    refuse_full(path)
    make_private(path)
    connection = open_database(path, isolation_level=None, cached_statements=32)
    try:
        read_schema(connection)
        for pragma in _PRAGMAS:
            connection.execute(pragma)
        connection.shm, connection.is_writer = SharedMemory(path), True
        if torn or how.accept_damage:
            # Frames that are left out must not lie there under the same salt at the next start.
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        if how.accept_damage:
            with suppress(sqlite3.DatabaseError):  # then they stay as they are, and are said each time
                connection.execute("REINDEX")
        migrate(connection, path, how.migrations, how.may_migrate)
        seq, chain = head_of(connection)
        if not how.accept_damage:
            check_tail(connection, path, seq)
            refuse_lost_end(path, seq, last_row_noted(path))
        # The home's own UUID, made once: host names change and repeat.
        own = ("host", str(uuid.uuid4()))
        connection.execute("INSERT OR IGNORE INTO meta (key, value) VALUES (?, ?)", own)
        host = _own_host(connection, path)
        note_boot(path, seq)  # once nothing is torn any more, and before a row is written
        return connection, Start(seq, chain, host, torn)
    except BaseException:
        connection.close()
        raise


def open_to_read(path: Path, how: Opening, torn: str = "") -> tuple[sqlite3.Connection, Start]:
    """A connection in the writer's place that can't write, and where the log stands; raises as `open_writer`."""
    try:
        connection = connect_readonly(path)
        try:
            migrate(connection, path, how.migrations, may_change=False)
            seq, chain = head_of(connection)
            check_tail(connection, path, seq)
            refuse_lost_end(path, seq, last_row_noted(path))
            host = _own_host(connection, path)
            return connection, Start(seq, chain, host, torn, is_read_only=True)
        except BaseException:
            connection.close()
            raise
    except sqlite3.Error as error:
        raise translate_error(error, path) from error


def _own_host(connection: sqlite3.Connection, path: Path) -> str:
    if host := host_of(connection):
        return host
    raise Damaged(f"{path}: it does not know the id of its home any more; restore it from a backup")


def refuse_new_log(path: Path) -> None:
    """Raise Damaged if no log lies at `path`, and something else knows that one did: a new one would hide the loss.

    It would have another id, too, so that no backup of the home could be put back.
    """
    if path.exists() and path.stat().st_size:
        return
    state = HomeLayout(path.parent).state
    known = max([last_row_of_any(path), *(one.head.seq for one in read_checkpoints(state).values())])
    if known or read_host(state):
        rows = (
            f", and had {count(known, 'row')}, which {are(known)} LOST"
            if known
            else ", and this home had one"
        )
        raise Damaged(
            f"{path} {'is empty' if path.exists() else 'is gone'}{rows}; put it back, or restore it from a backup, or go on"
            " without them: `upulse daemon start --accept-damage`"
        )


def refuse_lost_end(path: Path, head: int, noted: int) -> None:
    """Raise Damaged if rows after the last one were acknowledged, which a -wal deleted after a kill takes along."""
    if noted > head:
        lost = noted - head
        rows = f"{count(noted, 'row')}: the {lost} after it {are(lost)} LOST"
        raise Damaged(
            f"{path} ends at row {head}, and had {rows}; was its -wal deleted"
            " after a kill, or an older copy laid there? Restore it from a backup, or go on without them: `upulse daemon"
            " start --accept-damage` keeps a copy in damaged/ first"
        )


def check_tail(connection: sqlite3.Connection, path: Path, head: int, tail: int = TAIL) -> None:
    """Check the chain of the last `tail` rows, but not what a person accepted as damaged. Raises Damaged."""
    accepted = connection.execute(
        "SELECT max(seq) FROM event WHERE seq > ? AND +kind = 'damage-accepted'", (head - tail,)
    ).fetchone()[0]
    after = max(head - tail, (accepted or 1) - 1, 0)
    before = connection.execute("SELECT chain FROM event WHERE seq = ?", (after,)).fetchone()
    rows = connection.execute(f"SELECT {ALL_COLUMNS} FROM event WHERE seq > ? ORDER BY seq", (after,))
    good, fault = first_fault(rows, after, before[0] if before else START, Redactions(connection))
    if fault or after + good != head:
        raise Damaged(
            f"{path}: {fault or f'row {after + good + 1} is missing'}; restore it from a backup, or go on:"
            " `upulse daemon start --accept-damage` keeps a copy in damaged/ first"
        )
