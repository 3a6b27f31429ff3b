"""Checkpoints of projections in state.db: a cache that may vanish, so whatever is odd about it reads as empty."""

import asyncio
import hashlib
import sqlite3
from collections.abc import Callable, Mapping
from contextlib import closing, suppress
from pathlib import Path

from pulse_adapters.sqlite.connect import make_private, open_database
from pulse_core.model.event import Checkpoint, Head
from pulse_core.ports.loops import finish_despite_cancel

_SCHEMA = Path(__file__).parent / "schema" / "checkpoints.sql"
_FORMAT = 1


class SqliteCheckpoints:
    """`Checkpoints` on SQLite. The file is open only while it is used: once a minute is rare."""

    def __init__(self, path: Path, host: str = "", is_in_place: Callable[[], bool] = lambda: True) -> None:
        """host: the id of the home whose log they are of, to be saved with them; is_in_place: whether that lies there."""
        self._path, self._host, self._is_in_place = path, host, is_in_place

    async def load(self) -> Mapping[str, Checkpoint]:
        return await finish_despite_cancel(asyncio.to_thread(read_checkpoints, self._path))

    async def tell_host(self) -> None:
        """Have the file say which home's they are from its first start on: by that an exchange of logs is found."""
        if await asyncio.to_thread(read_host, self._path) != self._host:
            await self.save({})

    async def save(self, checkpoints: Mapping[str, Checkpoint]) -> None:
        """Replace these checkpoints; a file that cannot be used is begun anew, a disk that is full is let be.

        In a home that has taken the place of ours, which was moved, they would tell of rows that its log never had.
        """
        await finish_despite_cancel(asyncio.to_thread(self._save, checkpoints))

    def _save(self, checkpoints: Mapping[str, Checkpoint]) -> None:
        with suppress(OSError):
            if self._is_in_place():
                _write(self._path, checkpoints, self._host)


def read_checkpoints(path: Path) -> dict[str, Checkpoint]:
    """All checkpoints that are whole, by name; synchronous."""
    if not path.exists():
        return {}
    try:
        with closing(open_database(path, isolation_level=None)) as connection:
            rows = connection.execute("SELECT name, version, seq, chain, state, digest FROM checkpoint")
            found = [
                (name, Checkpoint(version, Head(seq, chain), state), digest)
                for name, version, seq, chain, state, digest in rows
            ]
    except sqlite3.Error:
        return {}
    return {name: checkpoint for name, checkpoint, digest in found if _digest(name, checkpoint) == digest}


def read_host(path: Path) -> str:
    """The id of the home that the checkpoints are of; empty if they do not say it, or can't be read."""
    if path.exists():
        with suppress(sqlite3.Error), closing(open_database(path, isolation_level=None)) as connection:
            return "".join(host for (host,) in connection.execute("SELECT host FROM log"))
    return ""


def _digest(name: str, checkpoint: Checkpoint) -> bytes:
    version, (seq, chain), state = checkpoint
    return hashlib.sha256(f"{name}\0{version}\0{seq}\0{chain!r}\0{state}".encode()).digest()


def _write(path: Path, checkpoints: Mapping[str, Checkpoint], host: str) -> None:
    with suppress(OSError, sqlite3.Error):  # a cache that cannot be written is only missed
        try:
            _replace(path, checkpoints, host)
        except sqlite3.OperationalError:
            return
        except sqlite3.DatabaseError:
            path.unlink(missing_ok=True)
            path.with_name(f"{path.name}-journal").unlink(missing_ok=True)
            _replace(path, checkpoints, host)


def _replace(path: Path, checkpoints: Mapping[str, Checkpoint], host: str) -> None:
    rows = [
        (name, kept.version, kept.head.seq, kept.head.chain, kept.state, _digest(name, kept))
        for name, kept in checkpoints.items()
    ]
    make_private(path)
    with closing(open_database(path)) as connection:
        if connection.execute("PRAGMA user_version").fetchone()[0] not in (0, _FORMAT):
            raise sqlite3.DatabaseError("checkpoints of another format")
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute("PRAGMA secure_delete = ON")  # what was redacted must not lie in a free page
        connection.executescript(f"{_SCHEMA.read_text()}\nPRAGMA user_version = {_FORMAT};")
        if host:
            connection.execute("DELETE FROM log")
            connection.execute("INSERT INTO log VALUES (?)", (host,))
        connection.executemany("INSERT OR REPLACE INTO checkpoint VALUES (?,?,?,?,?,?)", rows)
        connection.commit()
