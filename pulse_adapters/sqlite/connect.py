"""Connections that cannot write: `mode=ro` neither changes nor checkpoints, and works beside a writer."""

import fcntl
import os
import sqlite3
import struct
import time
from pathlib import Path
from urllib.parse import quote

from pulse_adapters.sqlite.wal import scan

_DEAD_MAN = 128
"""The byte of a -shm that every live connection holds a lock on, in SQLite's own file format."""


def connect_readonly(path: Path) -> sqlite3.Connection:
    """A read-only connection; the file must exist."""
    connection = sqlite3.connect(
        f"file:{quote(str(path.absolute()))}?mode=ro", uri=True, isolation_level=None
    )
    connection.execute("PRAGMA cache_size = -512")  # scans gain nothing from a cache, idle memory does
    return connection


def refuse_damage(path: Path) -> None:
    """Raise Damaged if a killed writer's log is not what it left: to be called before a first reader opens it.

    A reader makes the -shm anew, and with it goes the only witness of what was acknowledged.
    """
    shm = path.with_name(f"{path.name}-shm")
    if not is_open_elsewhere(shm):
        scan(
            path,
            rebooted=shm.exists()
            and shm.stat().st_mtime < time.time() - time.clock_gettime(time.CLOCK_BOOTTIME),
        )


def is_open_elsewhere(shm: Path) -> bool:
    """Whether another process has the database open at this moment."""
    try:
        file = os.open(shm, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        asked = struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, _DEAD_MAN, 1, 0)
        answer = fcntl.fcntl(file, fcntl.F_GETLK, asked)
        return bool(struct.unpack("hhqqi4x", answer)[0] != fcntl.F_UNLCK)
    finally:
        os.close(file)
