"""Puts the rows back that were saved when the log was deleted or replaced under its writer."""

import bisect
import os
import re
import sqlite3
import struct
from contextlib import closing, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import quote

from pulse_adapters.sqlite.aside import new_aside
from pulse_adapters.sqlite.backup.databases import Examined, copy_under_wal, examine, salvage
from pulse_adapters.sqlite.backup.swap import link_or_copy
from pulse_adapters.sqlite.connect import (
    connect_readonly,
    head_of,
    host_of,
    is_orphaned_wal,
    refuse_odd_files,
)
from pulse_adapters.sqlite.errors import code
from pulse_adapters.sqlite.open_log import Opening, open_writer
from pulse_adapters.sqlite.synced_files import put_file
from pulse_adapters.sqlite.verify import verify
from pulse_adapters.sqlite.wal import last_rowid
from pulse_adapters.workers.database_files import files_of, names_beside
from pulse_adapters.workers.plain_file import has_match
from pulse_adapters.workers.untrusted_paths import hand_over
from pulse_core.home import HomeLayout
from pulse_core.model.errors import PulseError
from pulse_core.model.text import count


def put_back(home: HomeLayout) -> str:
    """Make the saved rows the log again; what was done, in words. The caller holds the home's lock.

    Without saved rows the -wal is tried: all rows of a young log are in it. A file without a row is set aside. What lay
    under the log's names is kept, and stays the log if it is good and goes on after the saved rows. Raises Damaged or
    PulseError if that can't be done, as when other rows of this log lie there; it can be broken off anywhere and done
    again.
    """
    log, saved, said = home.events, home.saved_log, set_empty_aside(home)
    if not saved.exists():
        if not is_orphaned_wal(log):
            return said or "nothing has to be put back"
        _rebuild(home)
    found = examine(saved, home.objects)
    if more := _rows_not_saved(home, found):
        kept = new_aside(home)
        os.rename(saved, kept / saved.name)
        return f"{log} stays the log: it holds all {found.seq} rows of {saved.name}, now in {kept}, and {more} more"
    there = list(filter(os.path.lexists, names_beside(log)))  # of a link: not what it leads to
    aside = new_aside(home) if there else None
    for path in reversed(there):
        assert aside is not None
        os.rename(path, aside / path.name)
    put_file(saved, log)
    return f"{log} is there again, with {count(found.seq, 'row')}" + (
        f"; what lay there is in {aside}" if aside else ""
    )


def set_empty_aside(home: HomeLayout) -> str:
    """Move a file for saved rows that holds none out of the way; what was done, in words, or nothing."""
    if not home.saved_log.exists() or holds_rows(home.saved_log):
        return ""
    kept = new_aside(home)
    os.rename(home.saved_log, kept / home.saved_log.name)
    return f"{home.saved_log} held no row, and is in {kept}"


def holds_rows(saved: Path) -> bool:
    """Whether a file for saved rows has one, or can't be read."""
    try:
        with closing(_as_it_lies(saved)) as rows:
            return head_of(rows)[0] > 0
    except sqlite3.DatabaseError as error:
        return code(error) != sqlite3.SQLITE_ERROR  # no such table


def _rows_not_saved(home: HomeLayout, saved: Examined) -> int:
    """How many rows a good log has beyond the saved ones; 0 for what is another home's, can't be read, or is all saved.

    Raises PulseError if it is of this home and has rows that would leave the log while the saved ones came into it.
    """
    log, fault = home.events, ""
    with TemporaryDirectory(prefix=".compared-", dir=home.path) as directory:
        copy = Path(directory, log.name)  # beside the saved rows nobody may read it
        try:
            refuse_odd_files(log)
            for path, name in zip(names_beside(log)[:2], names_beside(copy)[:2], strict=True):
                if path.exists():
                    link_or_copy(path, name)
            with closing(connect_readonly(copy)) as there, closing(_as_it_lies(home.saved_log)) as rows:
                last = head_of(there)[0]
                if host_of(there) != saved.host:
                    return 0
                common = _last_common_row(there, rows, min(last, saved.seq))
            if common == saved.seq < last:
                fault = verify(copy, home.objects).fault
        except (PulseError, sqlite3.Error, OSError):
            return 0
    if (more := last - common) and (fault or common < saved.seq):
        why = (
            f", and is damaged ({fault})"
            if fault
            else f"; from row {common + 1} on the two are different logs"
        )
        raise PulseError(
            f"{log.name} has {count(more, 'row')} that {home.saved_log.name} does not hold{why}: nothing was changed. To "
            f"keep what lies there, move {home.saved_log.name} out of {home.path}; to have the saved rows, move "
            f"{log.name} and its -wal out of it, then upulse doctor --repair"
        )
    return more


def _last_common_row(one: sqlite3.Connection, other: sqlite3.Connection, last: int) -> int:
    """The last row, not after this one, with the same chain value in both logs: as is each row before it."""

    def is_same(seq: int) -> bool:
        first, second = (
            log.execute("SELECT chain FROM event WHERE seq = ?", (seq,)).fetchone() for log in (one, other)
        )
        return bool(first == second)

    if is_same(last):
        return last
    return bisect.bisect_left(range(last), True, key=lambda seq: not is_same(seq + 1))


def is_all_saved(home: HomeLayout) -> bool:
    """Whether the saved rows hold all that can be read under the log's names, so that nobody has to choose between them.

    It is so when a -wal was cut or altered under the writer, who had saved all rows from what was still open.
    """
    log, wals = home.events, {files_of(home.events).wal, names_beside(home.events).wal}
    try:
        refuse_odd_files(log)
        with closing(_as_it_lies(home.saved_log)) as rows:
            last, host = head_of(rows)[0], host_of(rows).encode()
            with (
                suppress(sqlite3.DatabaseError),
                closing(_as_it_lies(log)) as there,
            ):  # it may be damaged by now
                seq, chain = head_of(there)
                if seq and rows.execute("SELECT chain FROM event WHERE seq = ?", (seq,)).fetchone() != (
                    chain,
                ):
                    return False
        left = [path for path in (log, *wals) if path.exists() and path.stat().st_size]
        is_this_log = any(_holds(path, host) for path in left)
        return is_this_log and all(last_rowid(path) <= last for path in left if path != log)
    except (sqlite3.Error, OSError, ValueError, struct.error):
        return False


def _holds(path: Path, text: bytes) -> bool:
    with path.open("rb") as file:
        return bool(text) and has_match(file, re.compile(re.escape(text)), len(text))


def _as_it_lies(path: Path) -> sqlite3.Connection:
    """The pages of the file alone, without its -wal."""
    return sqlite3.connect(f"file:{quote(str(path))}?immutable=1", uri=True)


def _rebuild(home: HomeLayout) -> None:
    """Save the rows that the -wal holds, if those are all: each of them is checked, so a guess at the lost pages may do.

    Raises PulseError if there are others. The guess is a log that was just made.
    """
    wal = files_of(home.events).wal
    with TemporaryDirectory(prefix=".rebuilt-", dir=home.path) as directory:
        made, guess = Path(directory, "made"), Path(directory, home.events.name)
        connection, _ = open_writer(made, Opening())
        connection.close()
        copy_under_wal(made, guess)
        link_or_copy(wal, names_beside(guess).wal)
        found = salvage(guess, made, home.objects)
        if found.rows == 0 or found.rows < last_rowid(wal):
            raise PulseError(
                f"{wal.name} does not hold the whole log, only what was last written; to have it with what it holds:"
                " upulse restore BACKUP"
            )
        with closing(sqlite3.connect(made)) as copy:
            with copy:
                copy.execute("UPDATE meta SET value = (SELECT host FROM event LIMIT 1) WHERE key = 'host'")
            copy.execute("PRAGMA journal_mode = DELETE")
        hand_over(made, home.path)
        put_file(made, home.saved_log)
