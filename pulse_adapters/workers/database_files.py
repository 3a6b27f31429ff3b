"""The files of a SQLite database. SQLite follows links to the end and keeps the others beside what they lead to.

So their names are made here alone: one made of a link's name is the name of nothing, or of what was left there.
"""

import os
from pathlib import Path
from typing import NamedTuple


class DatabaseFiles(NamedTuple):
    """A database, its write-ahead log, and the index of that."""

    database: Path
    wal: Path
    shm: Path


def files_of(path: Path) -> DatabaseFiles:
    """Where they lie, whether `path` is the database or a link to it."""
    return names_beside(Path(os.path.realpath(path)))


def names_beside(path: Path) -> DatabaseFiles:
    """The three names if `path` is no link; of a link: what was left beside it, if anything."""
    return DatabaseFiles(path, Path(f"{path}-wal"), Path(f"{path}-shm"))


def left_beside_link(path: Path) -> Path | None:
    """The -wal beside a link to a database, where SQLite does not look for it; None if there is none, or no link."""
    wal = names_beside(path).wal
    if path.is_symlink() and wal != files_of(path).wal:
        try:
            return wal if wal.stat().st_size else None
        except OSError:
            return None
    return None
