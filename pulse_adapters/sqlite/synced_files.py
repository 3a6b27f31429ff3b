"""Files that are on disk as a whole before they have their names."""

import os
from pathlib import Path


def new_file(path: Path) -> Path:
    """An empty file for its owner alone, in the place of what is there."""
    path.unlink(missing_ok=True)
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    return path


def put_file(source: Path, target: Path) -> None:
    """Give the file its name, on disk as a whole."""
    with source.open("rb") as file:
        os.fsync(file.fileno())
    os.rename(source, target)
    sync_directory(target.parent)


def sync_directory(directory: Path) -> None:
    """Have the names in a directory on disk."""
    handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
