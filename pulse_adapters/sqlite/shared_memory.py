"""The -shm of an open database: SQLite has it mapped, and an access that can't be carried out ends the process.

That is one to what somebody has cut away; and a write to a page that is on the disk already, where the file system writes
what changes to another place (btrfs), and has no room.

And one to a page of which SQLite has made the last byte alone, where blocks are smaller than pages, as on an ext4 of less
than 512 MiB.

One that has to wait, for a disk that hangs, holds up the whole process as soon as another thread forks or maps memory: the
kernel keeps the map locked meanwhile. So the file system is asked for a write first, in which nobody but the thread waits.
"""

import errno
import mmap
import os
import sqlite3
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

from pulse_adapters.workers.database_files import files_of
from pulse_adapters.workers.read_only import NO_NEW_FILE
from pulse_adapters.workers.syscalls import file_system_magic, populate

_REGION = 32_768
"""Bytes that SQLite maps at once."""

_BTRFS, _TMPFS = 0x9123683E, 0x01021994
_MARGIN = 1024 * 1024
"""Room that a writer needs on such a file system: where a write finds none, all that is in memory is written first, and
then these pages need room anew, too."""


class SharedMemory:
    """The -shm of the database at `path`, which this process has open. It never becomes shorter."""

    def __init__(self, path: Path) -> None:
        self._path = str(files_of(path).shm)
        self._real = os.fsencode(os.path.realpath(self._path))
        self._known: os.stat_result | None = None
        self._mapped: list[tuple[int, int]] = []
        self.mend()
        self._folder = files_of(path).shm.parent
        self._needs_room = _magic(self._folder) == _TMPFS or may_need_room(self._folder)

    def mend(self) -> None:
        """Give it the length that it had: SQLite finds zeros in it, and makes it anew of the -wal.

        Its name is used: to open it, and to close that, would end all locks of this process on it.
        """
        with suppress(OSError):
            found = os.lstat(self._path)
            known = self._known or found
            if not os.path.samestat(found, known):
                return
            if found.st_size < known.st_size:
                os.truncate(self._path, known.st_size)
            else:
                self._known = found

    def await_disk(self) -> None:
        """Return once its file system takes a write, by one that changes nothing that matters.

        A process of one thread holds up nobody else: its reads may need no write.
        """
        if threading.active_count() > 1:
            with suppress(OSError):  # who may not write, or finds it gone, has nothing to wait for
                os.utime(self._path, follow_symlinks=False)

    def claim(self, *, to_write: bool = False) -> None:
        """Have its file system set aside room for its pages; raises sqlite3.OperationalError if there is none.

        Only where they may need it. Room for a file is asked for first: a disk that hangs holds up this thread alone.
        """
        if not self._needs_room:
            return
        has_margin = has_room(self._folder)
        size, refusal = self._known.st_size if self._known else 0, self._refusal()
        if refusal or len(self._mapped) * _REGION < size:
            self._mapped = self._mappings()  # once, and again where SQLite has mapped more, or others
            refusal = self._refusal()
        if refusal == errno.EFAULT or (to_write and not has_margin):
            raise _full()

    def _refusal(self) -> int:
        """Which error the kernel has for a write to it; 0 for none."""
        try:
            for start, length in self._mapped:
                populate(start, length)
        except OSError as error:
            return error.errno or 0
        return 0

    def _mappings(self) -> list[tuple[int, int]]:
        """Where SQLite has mapped it: addresses and lengths."""
        with suppress(OSError), open("/proc/self/maps", "rb") as maps:
            lines = (line.rstrip(b"\n").split(maxsplit=5) for line in maps if self._real in line)
            found = [line[0].split(b"-") for line in lines if line[1] == b"rw-s" and line[5] == self._real]
            return [(int(start, 16), int(end, 16) - int(start, 16)) for start, end in found]
        return []


def may_need_room(folder: Path) -> bool:
    """Whether a write to a page of a -shm that is there may need room: its file system writes what changes to another
    place, or blocks that are smaller than pages."""
    if _magic(folder) == _BTRFS:
        return True
    with suppress(OSError):
        return os.statvfs(folder).f_bsize < mmap.PAGESIZE
    return False


def has_room(folder: Path) -> bool:
    """Whether there is room for a writer of a database in this folder, where that must be known beforehand."""
    if not may_need_room(folder):
        return True
    try:
        file = os.open(folder, os.O_TMPFILE | os.O_WRONLY | os.O_CLOEXEC, 0o600)
        try:
            os.posix_fallocate(file, 0, _MARGIN)
        finally:
            os.close(file)
    except OSError as error:
        return error.errno not in NO_NEW_FILE
    return True


def refuse_full(path: Path) -> None:
    """Raise sqlite3.OperationalError if there is no room for a writer of the database at `path`: to be called before it is
    opened."""
    if not has_room(files_of(path).shm.parent):
        raise _full()


def _full() -> sqlite3.OperationalError:
    full = sqlite3.OperationalError("database or disk is full")
    full.sqlite_errorcode = sqlite3.SQLITE_FULL
    return full


def _magic(folder: Path) -> int:
    with suppress(OSError):
        return file_system_magic(str(folder))
    return 0


class MendingConnection(sqlite3.Connection):
    """A connection that mends its shared memory before each statement, in the thread that carries that out.

    Whatever SQLite complains about is a sqlite3.Error.
    """

    shm: SharedMemory | None = None
    is_writer = False

    def execute(self, *statement: Any) -> sqlite3.Cursor:
        self._prepare(is_end=statement[0] == "ROLLBACK")
        try:
            return super().execute(*statement)
        except UnicodeDecodeError as error:  # SQLite's words quote a schema that is no text any more
            raise sqlite3.DatabaseError(f"the schema can't be decoded: {error.object!r}") from None

    def executemany(self, *statement: Any) -> sqlite3.Cursor:
        self._prepare()
        return super().executemany(*statement)

    def executescript(self, *script: Any) -> sqlite3.Cursor:
        self._prepare()
        return super().executescript(*script)

    def _prepare(self, *, is_end: bool = False) -> None:
        if self.shm:
            self.shm.mend()
            if not self.in_transaction:
                self.shm.await_disk()
            if not is_end:  # which writes nothing, and must be possible
                self.shm.claim(to_write=self.is_writer)
