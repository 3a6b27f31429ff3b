"""Where a backup is to lie: what may not be there, and a directory beside it in which it is made."""

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pulse_core.model.errors import PulseError
from pulse_core.model.sizes import spell_size
from upulse_cli.backup.files import PRIVATE, sync_directory
from upulse_cli.backup.manifest import NAME

INODES = 100
"""Files and directories beyond those that are counted."""


def checked(text: str, home: Path) -> Path:
    """The absolute path that is meant; raises PulseError if no backup can be made there."""
    path = Path(os.path.realpath(os.path.expanduser(text)))
    inside = os.path.realpath(home)
    if path == Path(inside) or Path(inside) in path.parents:
        raise PulseError(
            f"{path} is in the home itself and would be lost with it; give a directory elsewhere"
        )
    if os.path.lexists(path):
        _demand_empty(path)
    if not path.parent.is_dir():
        raise PulseError(f"there is no directory {path.parent}; make it first, or give another place")
    if not os.access(path.parent, os.W_OK | os.X_OK):
        raise PulseError(f"{path.parent} is not writable for this user; give another place")
    return path


def _demand_empty(path: Path) -> None:
    if not path.is_dir():
        raise PulseError(f"{path} is there and no directory; give a new name")
    if (path / NAME).exists():
        raise PulseError(f"{path} holds a backup already; give a new name, as {path}-2")
    if any(path.iterdir()):
        raise PulseError(f"{path} is not empty; give a new name in it, as {path / 'pulse'}")
    if path.is_mount():
        raise PulseError(f"{path} is where a disk is mounted; give a new name in it, as {path / 'pulse'}")


def demand_room(place: Path, needed: int, files: int, what: str) -> None:
    """Raise PulseError if the file system of this directory has not enough room (bytes, files)."""
    found = os.statvfs(place)
    free = found.f_bavail * found.f_frsize
    if free < needed:
        raise PulseError(
            f"{what} needs {spell_size(needed)}, and {place} has {spell_size(free)}; make room there"
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
        _lock(handle, work)
        try:
            empty(work)
            work.chmod(PRIVATE)
            yield work
            work.rename(path)
            sync_directory(path.parent)
        except BaseException:
            shutil.rmtree(work, ignore_errors=True)
            raise
    finally:
        os.close(handle)


def empty(directory: Path) -> None:
    """Remove all that is in a directory."""
    for entry in directory.iterdir():
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry)
        else:
            entry.unlink()


def _lock(handle: int, work: Path) -> None:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise PulseError(
            f"another backup is being made in {work}; wait for it, or give another name"
        ) from None
