"""What SQLite complains about, in Pulse's words."""

import sqlite3
from pathlib import Path

from pulse_adapters.workers.database_files import files_of
from pulse_adapters.workers.read_only import is_failing, is_read_only, why_no_new_file
from pulse_core.model.errors import Damaged, LogUnavailable, PulseError

_CORRUPT = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})

_VALUES = frozenset(
    {sqlite3.SQLITE_ERROR, sqlite3.SQLITE_CONSTRAINT, sqlite3.SQLITE_MISMATCH, sqlite3.SQLITE_TOOBIG}
)


def code(error: sqlite3.Error) -> int:
    """SQLite's primary result code, 0 if Python raised the error by itself."""
    return (getattr(error, "sqlite_errorcode", 0) or 0) & 0xFF


def is_disk_full(error: sqlite3.Error) -> bool:
    """Whether freeing space may help: at a commit SQLite says FULL; a missing -shm is CANTOPEN or IOERR."""
    return code(error) in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_IOERR)


def is_corrupt(error: sqlite3.Error) -> bool:
    """Whether the file itself is broken, or lacks a table; a text that is no UTF-8 carries no code."""
    return code(error) in _CORRUPT or "decode" in str(error) or str(error).startswith("no such ")


def is_of_values(error: sqlite3.Error) -> bool:
    """Whether the same rows would be refused again on a disk that works."""
    return code(error) in _VALUES or is_corrupt(error)


def translate_error(error: sqlite3.Error, path: Path) -> PulseError:
    """The error as one a person can act on."""
    folder = files_of(path).database.parent
    # It calls a file damaged that can't be read.
    is_bad = is_corrupt(error) or code(error) == sqlite3.SQLITE_IOERR
    if is_bad and is_failing(folder):
        return LogUnavailable(
            f"{path} can't be read or written: its disk fails (see: dmesg); nothing was recorded. The file may be sound:"
            " mend or replace the disk, then upulse verify"
        )
    if is_corrupt(error):
        return Damaged(
            f"{path} is damaged ({error}); `upulse verify` names the first bad row,"
            " a copy beside it (events.db.before-N) or a backup can take its place"
        )
    if is_read_only(folder):  # it became that while the file was open: to SQLite it is full, or fails
        return LogUnavailable(f"{path} can't be written, nothing was recorded: {why_no_new_file(folder)}")
    remedy = {
        sqlite3.SQLITE_FULL: "free some space on its disk",
        sqlite3.SQLITE_READONLY: "make it and its directory writable for this user",
        sqlite3.SQLITE_CANTOPEN: "check that its directory exists, has space and is writable",
        sqlite3.SQLITE_IOERR: "check the disk and its space",
    }.get(code(error), "look at the disk, then try again")
    return LogUnavailable(f"{path} could not be written ({error}); nothing was recorded: {remedy}")


def unavailable(error: sqlite3.Error, path: Path) -> LogUnavailable:
    """Why an append was refused. Damage, too: nothing was recorded, and what can do without the log goes on."""
    found = translate_error(error, path)
    return found if isinstance(found, LogUnavailable) else LogUnavailable(str(found))
