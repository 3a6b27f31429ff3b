"""When events.db or its -wal is deleted, replaced, cut or altered under its writer: that is noticed, its rows are saved.

SQLite goes on writing into a file that nobody can find any more, and all of it is gone when the writer ends. What the
writer has open can still be read, so it is copied to `events.db.saved`. While that lies there, or a -wal without its
database, nobody takes what lies under the log's name for the log (`refuse_missing`): SQLite would begin an empty one and
delete the -wal.
"""

import asyncio
import os
import sqlite3
import threading
import weakref
from contextlib import closing, suppress
from pathlib import Path
from urllib.parse import quote

import aiosqlite

from pulse_adapters.sqlite.chain import ALL_COLUMNS, first_fault
from pulse_adapters.sqlite.connect import connect_readonly, head_of
from pulse_adapters.sqlite.errors import code
from pulse_adapters.sqlite.migrate import migrate
from pulse_adapters.sqlite.open_log import check_tail
from pulse_adapters.sqlite.shared_memory import SharedMemory
from pulse_adapters.sqlite.synced_files import new_file, put_file
from pulse_adapters.sqlite.wal import HEADER, header_of, offset
from pulse_adapters.sqlite.wal_watch import OwnIndex, WalWatch, own_descriptor
from pulse_adapters.workers.database_files import files_of
from pulse_adapters.workers.home_folder import HomeFolder
from pulse_core.model.errors import Damaged
from pulse_core.model.event import Head

CUT = "was cut short"
"""How the fault ends in which events.db is where it was, and has the rows that were moved into it."""

_BATCH = 1_000
_LOST = (sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


class LogFiles:
    """events.db and its -wal as they were opened.

    The first never becomes shorter. SQLite begins the other one anew in its place, under a new salt, and cuts it only
    once all of it was moved into the database, which somebody may ask of it. is_wal_as_found: whether its frames were,
    at the last look, what had been found good.
    """

    def __init__(self, path: Path) -> None:
        self._path, self._size, self._known = path, 0, dict[Path, tuple[int, int]]()
        self._database, self._wal, shm = files_of(path)
        self._wal_size, self._salt, self._links = 0, b"", set[Path]()
        self._written = self._changed_at()
        self.is_wal_as_found = False
        self._shm = SharedMemory(path)
        self._index, self._is_cutting = OwnIndex(shm), threading.Lock()
        self.wal = WalWatch(self._wal, self._index)
        for file in (self._database, self._wal):
            with suppress(FileNotFoundError):  # a file system without shared memory has no -wal
                found = file.stat()
                self._known[file] = found.st_dev, found.st_ino
        self._links.update(name for name in (path, self._wal) if name.is_symlink())
        home = Path(os.path.realpath(path.parent))
        self._places = {one: one.name if one.parent == home else os.fspath(one) for one in self._known}
        """By file: its name, if it lies in the home's folder, else its path."""
        self._open_home()

    def _open_home(self) -> None:
        self._home = HomeFolder(self._path.parent)
        self._close_home = weakref.finalize(self, self._home.close)

    def fault(self, head: Head) -> str:
        """What became of one of them, in words; empty while both lie where they were opened. head: a row on disk.

        They are looked for as a reader does: a link that leads to the same database hides a -wal that is not beside that.
        """
        self._shm.mend()
        there = files_of(self._path)
        for name, file, opened in (
            (self._path, there.database, self._database),
            (there.wal, there.wal, self._wal),
        ):
            if (known := self._known.get(opened)) is None:
                continue
            is_new_link = self._path not in self._links and os.path.islink(self._path)
            try:
                found = os.stat(file)
            except (FileNotFoundError, NotADirectoryError):
                if is_new_link:
                    return f"{self._path} was replaced by a link to {there.database}"
                return f"{name} was deleted or moved away"
            except OSError:
                if os.path.islink(name) and name not in self._links:
                    return f"{name} was replaced by a link that leads nowhere"
                continue  # that it can't be seen just now says nothing of it
            if (found.st_dev, found.st_ino) != known:
                return f"{name} was replaced by another file"
            if name != self._path:
                if self._is_wal_cut(head):
                    return f"{name} {CUT}"
            elif found.st_size < self._size:
                return f"{name} {CUT}"
            else:
                self._size = found.st_size
        return ""

    def is_wal_shorter(self) -> bool:
        """Whether the -wal is shorter than after the last commit; in a thousandth of a commit's time."""
        with suppress(OSError):
            return os.stat(self._wal).st_size < self._wal_size
        return False

    def is_written_by_others(self) -> bool:
        """Whether events.db was written since the last commit, which alone does that for its writer. Said once each time."""
        before, self._written = self._written, self._changed_at()
        return before != self._written

    def on_write(self) -> None:
        """Remember when events.db was written last: a commit may have moved the -wal into it."""
        self._written = self._changed_at()

    def _changed_at(self) -> int:
        with suppress(OSError):
            return os.stat(self._path).st_mtime_ns
        return 0

    def on_commit(self) -> None:
        """Remember how long the -wal is."""
        with suppress(OSError):
            self._wal_size = max(self._wal_size, os.stat(self._wal).st_size)

    def sync_wal(self) -> None:
        """Have it on disk that the -wal was emptied, which SQLite leaves to its next commit."""
        with suppress(OSError):
            file = os.open(self._wal, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
            try:
                os.fsync(file)
            finally:
                os.close(file)

    def wal_frames(self) -> int:
        """How many frames the -wal holds, as its writer knows."""
        return index.frames if (index := self._index()) else 0

    def cut_unwritten(self) -> None:
        """Cut the -wal behind its last whole transaction, after a commit that failed.

        The kernel takes pages whose writing has failed for written ones: what the next commit puts in their place may be
        acknowledged, and is on no disk. In new blocks it is written.
        """
        with self._is_cutting, suppress(OSError):
            file = os.open(self._wal, os.O_RDWR | os.O_CLOEXEC | os.O_NONBLOCK)
            try:
                index, header = self._index(), header_of(os.pread(file, HEADER, 0))
                if index is None or (index.frames and (header is None or header.salt != index.salt)):
                    return
                end = offset(index.frames + 1, header.size) if header and index.frames else 0
                if os.fstat(file).st_size > end:
                    os.ftruncate(file, end)
                    self._wal_size = end
            finally:
                os.close(file)

    def forget_unwritten(self) -> None:
        """Let the kernel read events.db anew, after a checkpoint that failed: it is made again, of the -wal.

        As in the -wal, pages of it may be taken for written that are on no disk.
        """
        with suppress(OSError):
            os.posix_fadvise(own_descriptor(self._database), 0, 0, os.POSIX_FADV_DONTNEED)

    def moved_to(self) -> Path | None:
        """Where the home lies now, if it was moved with both in it."""
        with suppress(OSError):
            return self._home.place() if self.are_elsewhere() else None
        return None

    def are_elsewhere(self) -> bool:
        """Whether both are whole in the home's folder, and that was moved, or something was mounted over it."""
        with suppress(OSError):
            folder = self._home.fileno()
            found = {file: os.stat(place, dir_fd=folder) for file, place in self._places.items()}
            are_whole = all((one.st_dev, one.st_ino) == self._known[file] for file, one in found.items())
            return are_whole and self._home.was_moved()
        return False

    def own_home(self) -> Path:
        """Where the home's own folder lies now; made anew if it was deleted. Raises OSError if nobody can reach it."""
        if not (self._home.is_in_place() or self._home.was_moved()):
            self._path.parent.mkdir(mode=0o700, exist_ok=True)
            self._close_home()
            self._open_home()
        return self._home.place()

    def version(self, name: str) -> tuple[int, ...]:
        """Which file has this name in the home's own folder, and since when it is as it is; nothing if there is none."""
        with suppress(OSError):
            found = os.stat(name, dir_fd=self._home.fileno())
            return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns
        return ()

    def remove(self, name: str) -> bool:
        """Remove this file from the home's own folder; False if that can't be done now."""
        try:
            os.unlink(name, dir_fd=self._home.fileno())
        except OSError as error:
            return isinstance(error, FileNotFoundError)
        return True

    def _is_wal_cut(self, head: Head) -> bool:
        """Whether frames of the -wal are gone: it is shorter, or what was cut away was written over behind a hole."""
        self.is_wal_as_found = self.wal.is_as_found()
        if self.is_wal_as_found or not self._is_cutting.acquire(blocking=False):
            return False
        try:
            return self._is_shorter(head)
        finally:
            self._is_cutting.release()

    def _is_shorter(self, head: Head) -> bool:
        known = self._wal_size  # before it is looked at: a commit may lengthen it meanwhile
        try:
            file = os.open(self._wal, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
            try:
                size, salt = os.fstat(file).st_size, os.pread(file, HEADER, 0)[16:24]
            finally:
                os.close(file)
        except OSError:  # of the close, too: a server may say only then that it has failed
            return False
        if any(self._salt) and salt and not any(salt):
            return True
        if size < known and ((salt and salt == self._salt) or not _holds(self._path, head)):
            return True
        self._wal_size, self._salt = size, salt
        return False


def _holds(path: Path, head: Head) -> bool:
    """Whether a new connection finds the row, or could not look just now."""
    try:
        with closing(connect_readonly(path)) as connection:
            found = connection.execute("SELECT chain FROM event WHERE seq = ?", (head.seq,)).fetchone()
    except sqlite3.Error as error:
        return code(error) not in _LOST
    return head.seq == 0 or (found is not None and found[0] == head.chain)


async def save_rows(connection: aiosqlite.Connection, path: Path, database: Path | None = None) -> int:
    """Copy the log out of the connection that has it open to `path`; the number of its last row.

    Where pages of it are gone or altered: the rows before the first that can be read neither there nor in `database`
    alone, which has what was moved out of the -wal; it is given where the log lies in its place. Raises OSError or
    sqlite3.Error. The event loop waits for no disk meanwhile.
    """

    def begin() -> sqlite3.Connection:
        return sqlite3.connect(new_file(unfinished), check_same_thread=False)

    def finish() -> int:
        copy.commit()
        copy.execute("PRAGMA journal_mode = DELETE")
        last = head_of(copy)[0]
        copy.close()
        put_file(unfinished, path)
        return last

    def check() -> bool:
        if copy.execute("PRAGMA quick_check(1)").fetchone()[0] != "ok":
            return False
        if database:
            last = head_of(copy)[0]
            check_tail(copy, path, last, last)
            copy.execute("REINDEX")
        return True

    unfinished = path.with_name(f"{path.name}.unfinished")
    with closing(await asyncio.to_thread(begin)) as copy:
        try:
            await connection.backup(copy)
            is_whole = await asyncio.to_thread(check)
        except Damaged:
            is_whole = False
        except sqlite3.DatabaseError as error:
            if code(error) not in _LOST:
                raise
            is_whole = False
        if is_whole:
            return await asyncio.to_thread(finish)
    with closing(await asyncio.to_thread(begin)) as copy:
        await asyncio.to_thread(migrate, copy, path)
        if database:
            with suppress(sqlite3.DatabaseError):
                async with aiosqlite.connect(f"file:{quote(str(database))}?immutable=1", uri=True) as alone:
                    await _copy_rows(alone, copy)
        await _copy_rows(connection, copy)
        copy.execute("INSERT INTO meta (key, value) SELECT 'host', host FROM event WHERE seq = 1")
        return await asyncio.to_thread(finish)


async def _copy_rows(source: aiosqlite.Connection, copy: sqlite3.Connection) -> None:
    """Copy the rows after those in the copy, up to the first that can't be read or is not what was written.

    Those before a damage that a person accepted are copied as they are.
    """
    sql = f"SELECT {ALL_COLUMNS} FROM event WHERE seq > ? ORDER BY seq LIMIT ?"
    insert = f"INSERT INTO event ({ALL_COLUMNS}) VALUES ({','.join('?' * 13)})"
    said = "SELECT coalesce(max(seq), 0) FROM event WHERE +kind = 'damage-accepted'"
    (seq, chain), count, accepted = head_of(copy), _BATCH, 0
    with suppress(sqlite3.DatabaseError):
        ((accepted,),) = await source.execute_fetchall(said)
    while True:
        try:
            rows = list(map(tuple, await source.execute_fetchall(sql, (seq, count))))
        except sqlite3.DatabaseError as error:
            if code(error) not in (*_LOST, 0):  # 0: what can't be decoded
                raise
            if count == 1:
                return
            count = 1
            continue
        before = sum(row[0] < accepted for row in rows)
        if before:
            seq, chain = rows[before - 1][0], rows[before - 1][12]
        good, fault = first_fault(rows[before:], seq, chain, lambda row: True)
        sound = rows[: before + good]
        await asyncio.to_thread(copy.executemany, insert, sound)
        if fault or not rows:
            return
        seq, chain = rows[-1][0], rows[-1][12]
