"""The -shm of an open database: SQLite has it mapped, so whoever cuts it short ends the process at the next access."""

import os
import sqlite3
from contextlib import suppress
from pathlib import Path
from typing import Any

from pulse_adapters.workers.database_files import files_of


class SharedMemory:
    """The -shm of the database at `path`, which this process has open. It never becomes shorter."""

    def __init__(self, path: Path) -> None:
        self._path = str(files_of(path).shm)
        self._known: os.stat_result | None = None
        with suppress(OSError):
            self._known = os.lstat(self._path)

    def mend(self) -> None:
        """Give it the length that it had: SQLite finds zeros in it, and makes it anew of the -wal.

        Its name is used: to open it, and to close that, would end all locks of this process on it.
        """
        if self._known is None:
            return
        with suppress(OSError):
            found = os.lstat(self._path)
            if not os.path.samestat(found, self._known):
                return
            if found.st_size < self._known.st_size:
                os.truncate(self._path, self._known.st_size)
            else:
                self._known = found


class MendingConnection(sqlite3.Connection):
    """A connection that mends its shared memory before each statement, in the thread that carries that out."""

    shm: SharedMemory | None = None

    def execute(self, *statement: Any) -> sqlite3.Cursor:
        if self.shm:
            self.shm.mend()
        return super().execute(*statement)

    def executescript(self, *script: Any) -> sqlite3.Cursor:
        if self.shm:
            self.shm.mend()
        return super().executescript(*script)
