"""Copies of files: whole, for their owner alone, on disk and read back; and the directory that they are made in."""

import ctypes
import errno
import fcntl
import hashlib
import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pulse_adapters.sqlite.backup.manifest import NAME, FileFact
from pulse_adapters.sqlite.synced_files import sync_directory
from pulse_core.model.errors import PulseError
from pulse_core.model.text import format_size

_PIECE = 1 << 20
PRIVATE = 0o700
INODES = 100
"""Files and directories beyond those that are counted."""
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
    for entry in sorted(source.iterdir(), key=lambda entry: (entry.name not in _REFS_FIRST, entry.name)):
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


def checked_destination(text: str, home: Path) -> Path:
    """The absolute path that is meant; raises PulseError if no backup can be made there."""
    path = Path(os.path.realpath(os.path.expanduser(text)))
    inside = os.path.realpath(home)
    if path == Path(inside) or Path(inside) in path.parents:
        raise PulseError(
            f"{path} is in the home itself and would be lost with it; give a directory elsewhere"
        )
    is_there = os.path.lexists(path)
    if is_there and not path.is_dir():
        raise PulseError(f"{path} is there and no directory; give a new name")
    if (path / NAME).exists():
        raise PulseError(f"{path} holds a backup already; give a new name, as {path}-2")
    if is_there and any(path.iterdir()):
        raise PulseError(f"{path} is not empty; give a new name in it, as {path / 'pulse'}")
    if path.is_mount():
        raise PulseError(f"{path} is where a disk is mounted; give a new name in it, as {path / 'pulse'}")
    if not path.parent.is_dir():
        raise PulseError(f"there is no directory {path.parent}; make it first, or give another place")
    if not os.access(path.parent, os.W_OK | os.X_OK):
        raise PulseError(f"{path.parent} is not writable for this user; give another place")
    return path


def demand_room(place: Path, needed: int, files: int, what: str) -> None:
    """Raise PulseError if the file system of this directory has not enough room (bytes, files)."""
    found = os.statvfs(place)
    free = found.f_bavail * found.f_frsize
    if free < needed:
        raise PulseError(
            f"{what} needs {format_size(needed)}, and {place} has {format_size(free)}; make room there"
        )
    if found.f_files and found.f_favail < files + INODES:
        raise PulseError(
            f"{what} needs {files + INODES} files, and {place} can take {found.f_favail}; make room there"
        )


@contextmanager
def under_construction(path: Path) -> Iterator[Path]:
    """A directory beside `path` that gets its name at the end; what fails leaves nothing.

    What a killed backup left there is removed first. Raises PulseError if another backup is being made there.
    """
    work = path.with_name(f".{path.name}.unfinished")
    work.mkdir(mode=PRIVATE, exist_ok=True)
    handle = os.open(work, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise PulseError(
                f"another backup is being made in {work}; wait for it, or give another name"
            ) from None
        try:
            empty_directory(work)
            work.chmod(PRIVATE)
            yield work
            work.rename(path)
            sync_directory(path.parent)
        except BaseException:
            shutil.rmtree(work, ignore_errors=True)
            raise
    finally:
        os.close(handle)


def empty_directory(directory: Path) -> None:
    """Remove all that is in a directory."""
    for entry in directory.iterdir():
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry)
        else:
            entry.unlink()
