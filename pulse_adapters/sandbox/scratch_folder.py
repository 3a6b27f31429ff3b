"""The one folder in which a child may write, and how full it is."""

import fcntl
import os
import secrets
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from itertools import count

MOST_BYTES, MOST_FILES = 64 * 1024 * 1024, 200
_PREFIX = "pulse-rules-"
_LOOK = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_YOUNG = 60.0


class Scratch:
    """A folder of its own for a child. Raises OSError."""

    def __init__(
        self, beneath: str | None, most_bytes: int = MOST_BYTES, most_files: int = MOST_FILES
    ) -> None:
        self._most_bytes, self._most_files = most_bytes, most_files
        self.path = tempfile.mkdtemp(prefix=_PREFIX, dir=beneath)
        self._held = _held(self.path)
        self._empty_at: int | None = None

    def give_to(self, user: tuple[int, int] | None) -> None:
        """Make it this user's (uid and gid), if not ours. Raises OSError."""
        if user:
            os.chown(self.path, *user)

    def is_over(self) -> bool:
        """Whether there is more in it than may be; nearly free while nobody writes there."""
        changed = os.fstat(self._held).st_mtime_ns
        if changed == self._empty_at:
            return False
        files = size = 0
        for entry in _within(self.path):
            files, size = files + 1, size + _size(entry)
            if files > self._most_files or size > self._most_bytes:
                return True
        self._empty_at = None if files else changed
        return False

    def remove(self) -> None:
        """Delete it, and those beside it that somebody left who was killed."""
        _delete(self.path, self._held)
        os.close(self._held)
        for path in _left(os.path.dirname(self.path)):
            with suppress(OSError):
                held = _held(path)  # nobody holds it
                try:
                    _delete(path, held)
                finally:
                    os.close(held)


def _held(path: str) -> int:
    """A descriptor that holds a folder for as long as its process lives. Raises OSError if it is held already."""
    held = os.open(path, _LOOK)
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(held)
        raise
    return held


def _left(beneath: str) -> list[str]:
    """Scratch folders that are old enough not to be about to be held."""
    with suppress(OSError), os.scandir(beneath) as entries:
        old = time.time() - _YOUNG
        ours = (entry for entry in entries if entry.name.startswith(_PREFIX))
        return [entry.path for entry in ours if entry.stat(follow_symlinks=False).st_mtime < old]
    return []


def _delete(path: str, held: int) -> None:
    """Delete a folder however deep it is: what its folders hold is moved up. What can't be deleted is left. held: it, open.

    Its owner may live and change it meanwhile, and we may be root: every name is looked up in a folder that is open.
    """
    prefix, numbers = secrets.token_hex(8), count()
    with suppress(OSError):
        while entries := _entries(held):
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    _flatten(held, entry.name, (f"{prefix}-{number}" for number in numbers))
                else:
                    os.unlink(entry.name, dir_fd=held)
        os.rmdir(path)


def _flatten(held: int, name: str, free: Iterator[str]) -> None:
    """Remove a folder in this one if it is empty; else move up what is in it."""
    folder = _opened(held, name)
    try:
        for one in (inside := _entries(folder)):
            if one.is_dir(follow_symlinks=False):
                os.close(_opened(folder, one.name))  # one that must not be written can't be moved
            os.rename(one.name, next(free), src_dir_fd=folder, dst_dir_fd=held)
    finally:
        os.close(folder)
    if not inside:
        os.rmdir(name, dir_fd=held)


def _opened(held: int, name: str) -> int:
    """A folder in this one, made accessible."""
    try:
        folder = os.open(name, _LOOK, dir_fd=held)
    except PermissionError:  # root never comes here: following a link, it could open what is not its owner's
        os.chmod(name, 0o700, dir_fd=held)
        folder = os.open(name, _LOOK, dir_fd=held)
    os.fchmod(folder, 0o700)
    return folder


def _entries(folder: int) -> list["os.DirEntry[str]"]:
    with os.scandir(folder) as entries:
        return list(entries)


def _size(entry: "os.DirEntry[str]") -> int:
    with suppress(OSError):  # it is gone
        return entry.stat(follow_symlinks=False).st_blocks * 512
    return 0


def _within(path: str) -> Iterator["os.DirEntry[str]"]:
    """Everything beneath a folder, as deep as a path can be told."""
    folders = [path]
    while folders:
        try:
            entries = os.scandir(folders.pop())
        except OSError:
            continue  # its path is too long, or it is gone
        with entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)
                yield entry
