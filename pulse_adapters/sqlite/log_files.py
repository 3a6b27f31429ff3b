"""When events.db is deleted, replaced or cut short under its writer: that is noticed, and its rows are saved.

SQLite goes on writing into a file that nobody can find any more, and all of it is gone when the writer ends. What the
writer has open can still be read, so it is copied to `events.db.saved`. While that lies there, or a -wal without its
database, nobody takes what lies under the log's name for the log (`refuse_missing`): SQLite would begin an empty one and
delete the -wal.
"""

import asyncio
import os
import sqlite3
from contextlib import closing, suppress
from pathlib import Path

import aiosqlite

from pulse_adapters.sqlite.connect import head_of
from pulse_adapters.sqlite.synced_files import new_file, put_file


class LogFiles:
    """events.db and its -wal as they were opened.

    The first never becomes shorter; the other one may, when somebody has it moved into the database.
    """

    def __init__(self, path: Path) -> None:
        self._size, self._known = 0, dict[str, tuple[int, int]]()
        for name in (str(path), f"{path}-wal"):
            with suppress(FileNotFoundError):  # a file system without shared memory has no -wal
                found = os.stat(name)
                self._known[name] = found.st_dev, found.st_ino

    def fault(self) -> str:
        """What became of one of them, in words; empty while both lie where they were opened."""
        for name, known in self._known.items():
            try:
                found = os.stat(name)
            except (FileNotFoundError, NotADirectoryError):
                return f"{name} was deleted or moved away"
            except OSError:
                continue  # that it can't be seen just now says nothing of it
            if (found.st_dev, found.st_ino) != known:
                return f"{name} was replaced by another file"
            if not name.endswith("-wal"):
                if found.st_size < self._size:
                    return f"{name} was cut short"
                self._size = found.st_size
        return ""


async def save_rows(connection: aiosqlite.Connection, path: Path) -> int:
    """Copy the log out of the connection that has it open to `path`; the number of its last row.

    Raises OSError or sqlite3.Error. The event loop waits for no disk meanwhile.
    """

    def begin() -> sqlite3.Connection:
        path.parent.mkdir(mode=0o700, exist_ok=True)  # the home may have been deleted as a whole
        return sqlite3.connect(new_file(unfinished), check_same_thread=False)

    def finish() -> int:
        copy.execute("PRAGMA journal_mode = DELETE")
        last = head_of(copy)[0]
        copy.close()
        put_file(unfinished, path)
        return last

    unfinished = path.with_name(f"{path.name}.unfinished")
    with closing(await asyncio.to_thread(begin)) as copy:
        await connection.backup(copy)
        return await asyncio.to_thread(finish)
