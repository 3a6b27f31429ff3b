"""The one folder in which a child may write, and how full it is."""

import fcntl
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress

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

    def __enter__(self) -> "Scratch":
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()

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
            files += 1
            with suppress(OSError):  # it is gone
                size += entry.stat(follow_symlinks=False).st_blocks * 512
            if files > self._most_files or size > self._most_bytes:
                return True
        self._empty_at = None if files else changed
        return False

    def remove(self) -> None:
        """Delete it, and those beside it that somebody left who was killed."""
        _delete(self.path, self._held)
        for path in _left(os.path.dirname(self.path)):
            with suppress(OSError):
                _delete(path, _held(path))  # nobody holds it


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
    """Delete a folder, as far as that is possible. held: it, open; it is closed.

    Its owner may live and change it meanwhile, and we may be root: every name is looked up in a folder that is open, and
    no link is followed. Python gives up where folders are nested too deep, or must not be written.
    """
    with suppress(RecursionError):
        shutil.rmtree(".", ignore_errors=True, dir_fd=held)
    if left := os.listdir(held):
        allow: list[Sequence[str]] = [("chmod", "-R", "u+rwx", ".")] if os.geteuid() else []
        for command in (*allow, ("rm", "-rf", "--", *left)):
            with suppress(OSError):
                subprocess.run(command, cwd=f"/proc/self/fd/{held}", stderr=subprocess.DEVNULL, check=False)
    os.close(held)
    with suppress(OSError):
        os.rmdir(path)


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
