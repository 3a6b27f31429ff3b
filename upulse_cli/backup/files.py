"""Copying files so that they are whole, for their owner alone, and on disk; and reading them back from there."""

import ctypes
import errno
import hashlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from upulse_cli.backup.manifest import FileFact

_PIECE = 1 << 20
PRIVATE = 0o700
_REFS_FIRST = ("HEAD", "packed-refs", "refs", "logs")
"""Of a git repository: its objects are there before anything points to them, so pointers are copied first."""


def copy_file(source: Path, target: Path) -> FileFact:
    """Copy one file; the copy is its owner's alone, executable if the original is."""
    digest, size = hashlib.sha256(), 0
    with source.open("rb") as original:
        mode = 0o600 | (os.fstat(original.fileno()).st_mode & stat.S_IXUSR)
        with os.fdopen(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as copy:
            os.fchmod(copy.fileno(), mode)
            while piece := original.read(_PIECE):
                copy.write(piece)
                digest.update(piece)
                size += len(piece)
    return FileFact(size, digest.hexdigest(), mode)


def copy_tree(source: Path, target: Path, name: str) -> Iterator[tuple[str, FileFact]]:
    """Copy a directory that others may be writing: its files and links, with the paths that they have in a backup."""
    target.mkdir(mode=PRIVATE)
    for entry in sorted(source.iterdir(), key=_pointers_first):
        place = f"{name}/{entry.name}"
        if entry.name.endswith(".lock") or entry.name == "__pycache__":
            continue
        try:
            if entry.is_symlink():
                (target / entry.name).symlink_to(link := os.readlink(entry))
                yield place, FileFact(0, "", 0, link)
            elif entry.is_dir():
                yield from copy_tree(entry, target / entry.name, place)
            elif entry.is_file():
                yield place, copy_file(entry, target / entry.name)
        except FileNotFoundError:  # whoever works there has just removed it
            continue


def _pointers_first(entry: Path) -> tuple[bool, str]:
    return entry.name not in _REFS_FIRST, entry.name


def fact_of(path: Path) -> FileFact:
    """What there is, read from the disk itself where it was synced."""
    if path.is_symlink():
        return FileFact(0, "", 0, os.readlink(path))
    with path.open("rb") as file:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        found = os.fstat(file.fileno())
    return FileFact(found.st_size, digest, stat.S_IMODE(found.st_mode))


def sync_all(directory: Path) -> None:
    """Have everything on the directory's file system on disk; raises OSError if that failed."""
    handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        if ctypes.CDLL(None, use_errno=True).syncfs(handle):
            code = ctypes.get_errno()
            if code != errno.ENOSYS:
                raise OSError(code, os.strerror(code), str(directory))
            os.sync()
    finally:
        os.close(handle)


def sync_directory(directory: Path) -> None:
    """Have the names in a directory on disk."""
    handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_synced(path: Path, text: str) -> None:
    """A small file, whole and on disk before it has its name."""
    new = path.with_name(f".{path.name}.unfinished")
    with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    new.replace(path)
    sync_directory(path.parent)


def size_of(path: Path) -> int:
    """The bytes of a file or of everything in a directory; 0 if there is nothing."""
    if path.is_dir() and not path.is_symlink():
        return sum(size_of(entry) for entry in path.iterdir())
    try:
        return path.lstat().st_size
    except FileNotFoundError:
        return 0
