"""Connections that cannot write: `mode=ro` neither changes nor checkpoints, and works beside a writer."""

import fcntl
import os
import sqlite3
import stat
import struct
from contextlib import closing, suppress
from enum import Enum
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

from pulse_adapters.sqlite.chain import ALL_COLUMNS, START, first_fault
from pulse_adapters.sqlite.errors import is_disk_full
from pulse_adapters.sqlite.last_write import was_rebooted_since_written
from pulse_adapters.sqlite.shared_memory import MendingConnection, SharedMemory, has_room, may_need_room
from pulse_adapters.sqlite.wal import HEADER, REMEDY, read_index, scan
from pulse_adapters.sqlite.wal_watch import WalWatch, own_descriptor
from pulse_adapters.workers.database_files import files_of, left_beside_link
from pulse_adapters.workers.read_only import why_no_new_file
from pulse_core.home import HomeLayout
from pulse_core.model.errors import Damaged, LogUnavailable

_DEAD_MAN = 128
"""The byte of a -shm that every live connection holds a lock on, in SQLite's own file format."""

_SHM = 32_768
"""Bytes of a -shm that somebody has open, at least."""

HOST = "SELECT value FROM meta WHERE +key = 'host'"
"""The id of the home whose log this is. Asked of no index: a damaged one leads to another row, whose value is no id."""


class ReadMode(Enum):
    """How a file can be opened for reading; the value goes to SQLite."""

    SHARED = ""
    """Beside others, with a -shm: there is one, or one can be made."""

    BESIDE = "&readonly_shm=1"
    """Beside others, where a write to the -shm may need room: nothing is noted in it."""

    FROZEN = "&immutable=1"
    """Nobody can write here and no -wal holds anything: the file is all there is."""

    ALONE = "&vfs=unix-none"
    """Nobody can write here, but the -wal holds rows: its index is made in memory instead of a -shm."""


def make_private(path: Path) -> None:
    """Make a database's file for its owner alone if it is missing: SQLite would leave that to the umask.

    One that is there is not opened: to close it would take this process's locks on it. What can't be made, SQLite says.
    """
    with suppress(OSError):
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))


def open_database(path: Path | str, uri: str = "", **options: Any) -> MendingConnection:
    """Open a database, of which every file is one: a pipe in its place would hang whoever opens it.

    Raises sqlite3.DatabaseError for what is no file. uri: what SQLite is given instead of the path.
    """
    refuse_odd_files(Path(path))
    return sqlite3.connect(uri or path, uri=bool(uri), factory=MendingConnection, **options)


def refuse_odd_files(path: Path) -> None:
    """Raise sqlite3.DatabaseError if a database, its -wal or its -shm is a pipe, a socket, a device or a directory.

    So does a link in the place of one of the last two, which SQLite doesn't follow.
    """
    for part in files_of(path):
        with suppress(OSError):
            mode = part.lstat().st_mode
            if stat.S_ISLNK(mode):
                raise sqlite3.DatabaseError(f"{part} is a link; put what it leads to there, or move it away")
            if not stat.S_ISREG(mode):
                raise sqlite3.DatabaseError(f"{part} is no regular file; move it away")


def connect_readonly(path: Path) -> sqlite3.Connection:
    """A read-only connection; the file must exist. It may lie where this user can't write, or nobody can."""
    way = read_mode_for(path)
    try:
        return _connect(path, way)
    except sqlite3.OperationalError as error:
        _, wal, shm = files_of(path)
        if way is ReadMode.BESIDE and not _is_open(shm, by_others=True):
            return connect_readonly(path)  # the last one who had it open has just closed it
        # Without room or inodes: a -shm that can't be made as a whole, or anew, so nobody has the database open.
        if way is not ReadMode.SHARED or not is_disk_full(error) or _is_open(shm):
            raise
        return _connect(path, _without_shm(wal))


def _uri(path: Path, way: ReadMode) -> str:
    """The path as SQLite takes it with options. It has an empty host: what is behind two slashes at its beginning is one."""
    return f"file://{quote(str(path.absolute()))}?mode=ro{way.value}"


def _connect(path: Path, way: ReadMode) -> sqlite3.Connection:
    connection = open_database(path, _uri(path, way), isolation_level=None)
    try:
        if way is ReadMode.ALONE:  # before whatever looks into the file
            connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        connection.execute("PRAGMA cache_size = -512")  # scans gain nothing from a cache, idle memory does
        read_schema(connection)
        connection.shm = SharedMemory(path) if way is ReadMode.SHARED else None
    except BaseException:
        connection.close()
        raise
    return connection


def read_schema(connection: sqlite3.Connection) -> None:
    """Have SQLite read the schema now; raises sqlite3.DatabaseError if that is damaged."""
    connection.execute("SELECT 1 FROM sqlite_schema LIMIT 1")


def read_mode_for(path: Path) -> ReadMode:
    """How this user can read the database. Where a -shm can be neither used nor made, nobody has it open."""
    database, wal, shm = files_of(path)
    if may_need_room(database.parent):
        if _is_open(shm, by_others=True):
            return ReadMode.BESIDE
        if not has_room(database.parent) and not _is_open(shm):
            return _without_shm(wal)
    may_write = os.access(database.parent, os.W_OK) and (shm.exists() or not why_no_new_file(database.parent))
    if may_write or is_open_elsewhere(shm):
        return ReadMode.SHARED
    found = _without_shm(wal)
    return ReadMode.SHARED if found is ReadMode.ALONE and shm.exists() else found


def _without_shm(wal: Path) -> ReadMode:
    return ReadMode.ALONE if wal.exists() and wal.stat().st_size > HEADER else ReadMode.FROZEN


def refuse_damage(path: Path) -> None:
    """Raise Damaged if a killed writer's log is not what it left: to be called before a first reader opens it.

    A reader makes the -shm anew, and with it goes the only witness of what was acknowledged.
    """
    refuse_unfinished(path)
    refuse_missing(path)
    if not is_open_elsewhere(files_of(path).shm):
        scan(path, rebooted=was_rebooted_since_written(path))
        refuse_wal_of_another(path)


def lost_frames(path: Path) -> str:
    """What is lost of a database without which a daemon goes on, in words; empty while its -wal is whole, or somebody has it
    open, or it can't be read, which SQLite says."""
    try:
        refuse_odd_files(path)
        if not is_open_elsewhere(files_of(path).shm):
            scan(path)
    except Damaged as damage:
        return f"{str(damage).removesuffix(REMEDY)}: what was written after that is lost"
    except (LogUnavailable, sqlite3.DatabaseError):
        pass
    return ""


def refuse_wal_of_another(path: Path) -> None:
    """Raise Damaged if the -wal is that of another log: what it holds does not go on from the last row that the database
    has without it.

    SQLite takes any that lies there, and whoever opens it to write moves it into the database, at the latest at its end.
    """
    database, wal, _ = files_of(path)
    with suppress(sqlite3.Error, OSError):  # what can't be read is said by who opens it next
        if wal.stat().st_size <= HEADER:
            return
        alone_uri = _uri(database, ReadMode.FROZEN)
        with closing(open_database(path, alone_uri)) as alone, closing(connect_readonly(path)) as both:
            sql = f"SELECT {ALL_COLUMNS} FROM event WHERE seq > ? ORDER BY seq LIMIT 2"
            seq, chain = head_of(alone)
            rows = alone.execute(sql, (max(seq - 2, 0),)).fetchall()
            previous = rows[0][12] if seq > 1 else START
            if not rows or first_fault(rows[-1:], seq - 1, previous, lambda _: True)[1]:
                return  # none, or of a page that a power cut tore: it lies in the -wal as a whole
            found = both.execute(sql, (seq - 1,)).fetchall()
            _, fault = first_fault(found[1:], seq, chain, lambda _: True)
            if fault or [row[12] for row in found[:1]] != [chain]:
                raise Damaged(
                    f"{wal} is that of another log, or an older one: it does not go on from row {seq}, with which {path}"
                    " ends; put back the -wal that belongs there, or restore it from a backup, or go on: `upulse daemon"
                    " start --accept-damage` keeps a copy in damaged/ first"
                )


def refuse_altered_wal(path: Path) -> None:
    """Raise Damaged if the -wal that a writer has open is not what it wrote: the writer and its readers notice nothing."""
    _, wal, shm = files_of(path)
    if is_open_elsewhere(shm) and (words := WalWatch(wal, partial(read_index, shm)).fault()):
        raise Damaged(
            f"{words} while a daemon has it open, which still has all rows and saves them within seconds; don't kill it:"
            " upulse daemon stop, then upulse doctor --repair"
        )


def refuse_unfinished(path: Path) -> None:
    """Raise Damaged if the log at `path` is being exchanged for one from a backup, and that was broken off.

    Until that is finished, nobody may take what lies there for the log; nor ever what is no file.
    """
    try:
        refuse_odd_files(path)
    except sqlite3.DatabaseError as error:
        refuse_missing(path)  # it need not be moved away if rows were saved: they are put back in its place
        raise Damaged(str(error)) from error
    if HomeLayout(path.parent).restore_plan.exists():
        raise Damaged(
            f"a restore of {path.parent} was broken off in its last step; finish it: upulse doctor --repair,"
            " or upulse restore again"
        )


def is_orphaned_wal(path: Path) -> bool:
    """Whether the database is gone, or was emptied, and its -wal is not: SQLite would delete that."""
    try:
        return not (path.exists() and path.stat().st_size) and files_of(path).wal.stat().st_size > 0
    except FileNotFoundError:
        return False


def refuse_missing(path: Path) -> None:
    """Raise Damaged if what lies at `path` is not the log, since that was deleted or replaced under its writer.

    Raises LogUnavailable if it is a link to nothing: a new log there would hide the one that is on another disk.
    """
    if (saved := path.with_name(f"{path.name}.saved")).exists():
        raise Damaged(
            f"{path} or its -wal was deleted, replaced, cut or altered while a daemon had it open, which saved its rows in"
            f" {saved}; stop the daemon if it still runs (upulse daemon stop), then put them back: upulse doctor --repair"
        )
    if stray := left_beside_link(path):
        raise Damaged(
            f"{path} is a link, and {stray} lies beside the link, with rows that nobody reads there: was the log moved"
            " while a daemon had it open? If one still runs: upulse daemon stop. If none does, and the log was not used"
            f" since, move it to {files_of(path).wal}; or go on without it: `upulse daemon start --accept-damage` keeps a"
            " copy in damaged/ first"
        )
    if is_orphaned_wal(path):
        raise Damaged(
            f"{path} is gone, and its -wal still holds acknowledged rows; put the file back, or let upulse doctor --repair"
            " try to make it of the -wal, or upulse restore a backup, which carries over what the -wal holds; or go on"
            " without them: `upulse daemon start --accept-damage` keeps a copy in damaged/ first"
        )
    if path.is_symlink() and not path.exists():
        raise LogUnavailable(
            f"{path} is a link to {files_of(path).database}, which is not there: mount its disk, or put the log there; or"
            " remove the link, then upulse restore a backup"
        )


def head_of(connection: sqlite3.Connection) -> tuple[int, bytes]:
    """The last row's number and chain value; 0 and zeros for an empty log."""
    row = connection.execute("SELECT seq, chain FROM event ORDER BY seq DESC LIMIT 1").fetchone()
    return row or (0, START)


def host_of(connection: sqlite3.Connection) -> str:
    """The id of the home whose log this is; empty for one that was never opened for writing, or has lost it."""
    row = connection.execute(HOST).fetchone()
    return str(row[0]) if row else ""


def _is_open(shm: Path, *, by_others: bool = False) -> bool:
    """Whether this process or another one has the database open, or only another one."""
    if not shm.exists() or shm.stat().st_size < _SHM:
        return False
    if own_descriptor(shm) >= 0:  # to ask for others would end this process's locks on it
        return not by_others
    return is_open_elsewhere(shm)


def is_open_elsewhere(shm: Path) -> bool:
    """Whether another process has the database open at this moment."""
    try:
        file = os.open(shm, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        asked = struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, _DEAD_MAN, 1, 0)
        answer = fcntl.fcntl(file, fcntl.F_GETLK, asked)
        return bool(struct.unpack("hhqqi4x", answer)[0] != fcntl.F_UNLCK)
    finally:
        os.close(file)
