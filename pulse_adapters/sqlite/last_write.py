"""In which boot a log was last open for writing, and its last row then, told by a file beside it.

A power cut may tear the last transaction, which nobody was told of then; a kill tears none. Which of them it was is no
matter of times: the wall clock may have been set since. The row shows what a -wal that was deleted after a kill took along.
"""

import os
from contextlib import suppress
from io import FileIO
from pathlib import Path

from pulse_adapters.sqlite.synced_files import sync_directory
from pulse_adapters.workers.boot_id import boot_id
from pulse_adapters.workers.database_files import files_of
from pulse_adapters.workers.plain_file import open_plain, read_plain

_LENGTH, _MOST = 36, 128


def was_rebooted_since_written(path: Path) -> bool:
    """Whether the log at `path` was last written in an earlier boot; False if nothing tells."""
    now = boot_id()
    with suppress(OSError):
        told = read_plain(_place(path), _MOST)[:_LENGTH].decode("ascii", "replace")
        return bool(now) and len(told) == _LENGTH and told != now
    return False


def note_boot(path: Path, head: int) -> None:
    """Note that the log at `path` is written in this boot from now on; on disk, so that a power cut leaves it.

    head: its last row now; if more rows were noted, their loss was accepted, and that is noted no more.
    """
    place, now = _place(path), boot_id().encode()
    with suppress(OSError):
        if read_plain(place, _MOST)[:_LENGTH] == now and last_row_noted(path) <= head:
            return
    try:
        with open(open_plain(place, os.O_WRONLY | os.O_CREAT), "wb") as file:
            if os.geteuid() == 0:  # as SQLite does with a -wal
                database = os.stat(path)
                os.fchown(file.fileno(), database.st_uid, database.st_gid)
            file.write(now)
            file.truncate()
            file.flush()
            os.fsync(file.fileno())
        sync_directory(place.parent)
    except OSError:
        with suppress(OSError):
            place.unlink()  # what it says of an earlier boot is not true any more


class LastRow:
    """Notes the last row of an open log; without a sync, since it counts in this boot alone."""

    def __init__(self, path: Path) -> None:
        """Nothing is noted where `note_boot` could not."""
        self._file: FileIO | None = None
        with suppress(OSError):
            if read_plain(_place(path), _MOST)[:_LENGTH] == boot_id().encode():
                self._inode = files_of(path).database.stat().st_ino
                self._file = FileIO(open_plain(_place(path), os.O_WRONLY), "wb")

    def note(self, seq: int) -> None:
        """Note this row as the last one."""
        if self._file:
            with suppress(OSError, ValueError):  # ValueError: it is closed
                os.pwrite(self._file.fileno(), b" %020d %020d" % (self._inode, seq), _LENGTH)

    def close(self) -> None:
        """Note nothing more."""
        if self._file:
            with suppress(OSError):  # a server says only then that it could not keep what was written
                self._file.close()


def last_row_noted(path: Path) -> int:
    """The last row that this very file had in this boot; 0 if nothing tells, as of a copy of it."""
    with suppress(OSError):
        boot, inode, seq = _noted(path)
        if boot == boot_id() and inode == files_of(path).database.stat().st_ino:
            return seq
    return 0


def last_row_of_any(path: Path) -> int:
    """The last row that whatever lay at `path` had, in whichever boot; 0 if nothing tells."""
    return _noted(path)[2]


def _noted(path: Path) -> tuple[str, int, int]:
    with suppress(OSError, ValueError):
        boot, inode, seq = read_plain(_place(path), _MOST).decode("ascii").split()
        return boot, int(inode), int(seq)
    return "", 0, 0


def _place(path: Path) -> Path:
    return Path(f"{files_of(path).database}-boot")
