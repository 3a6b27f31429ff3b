"""The one folder in which a child may write, and how full it is.

A child that root starts mounts a file system of its own there, which is as large as it may be, and gone with the child
(`confinement`). Where that can't be had, the folder is looked at now and then, and emptied by a child with a deadline.
"""

import fcntl
import os
import stat
import tempfile
import time
from contextlib import suppress

from pulse_adapters.workers.untrusted_paths import FOLDER, empty_folder, open_folder

MOST_BYTES, MOST_FILES = 64 * 1024 * 1024, 200
DEEPEST = 200
"""Folders within each other, each with a descriptor while it is looked at; no rule may make as many."""
OF_ROOT = "/var/cache/pulse-scratch"
"""Where root's lie: a folder in which nobody else may change a name."""
_PREFIX = "pulse-rules-"
_YOUNG = 60.0


class Scratch:
    """A folder of its own for a child. Raises OSError."""

    def __init__(
        self, beneath: str | None, most_bytes: int = MOST_BYTES, most_files: int = MOST_FILES
    ) -> None:
        self._most_bytes, self._most_files = most_bytes, most_files
        self.path = tempfile.mkdtemp(prefix=_PREFIX, dir=beneath or _parent())
        self._held = _held(self.path)
        self._empty_at: int | None = None

    def __enter__(self) -> "Scratch":
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()

    def is_over(self) -> bool:
        """Whether there is more in it than may be; nearly free while nobody writes there."""
        changed = os.fstat(self._held).st_mtime_ns
        if changed == self._empty_at:
            return False
        usage = _Usage(self._most_bytes, self._most_files)
        if usage.is_over(self._held):
            return True
        self._empty_at = None if usage.files else changed
        return False

    def remove(self) -> None:
        """Delete it, and those beside it that somebody left who was killed."""
        _delete(self.path, self._held)
        for path in _left(os.path.dirname(self.path)):
            with suppress(OSError):
                _delete(path, _held(path))  # nobody holds it


def remove_left_over() -> None:
    """Delete what root's children left that were killed, and the folder of all of them unless somebody uses it."""
    for path in _left(OF_ROOT, 0.0):
        with suppress(OSError):
            _delete(path, _held(path))
    with suppress(OSError):
        os.rmdir(OF_ROOT)


class _Usage:
    """What is in a folder, until it is more than may be."""

    def __init__(self, most_bytes: int, most_files: int) -> None:
        self._most_bytes, self._most_files = most_bytes, most_files
        self.files = self.size = 0

    def is_over(self, held: int, depth: int = 0) -> bool:
        """Count what is in this open folder, too, and whether that makes it too much."""
        folders = []
        with os.scandir(held) as entries:
            for entry in entries:
                with suppress(OSError):  # it is gone
                    found = entry.stat(follow_symlinks=False)
                    self.files, self.size = self.files + 1, self.size + found.st_blocks * 512
                    if self.files > self._most_files or self.size > self._most_bytes:
                        return True
                    if stat.S_ISDIR(found.st_mode) and depth < DEEPEST:
                        folders.append(entry.name)
        return any(self._is_over(name, held, depth + 1) for name in folders)

    def _is_over(self, name: str, within: int, depth: int) -> bool:
        with suppress(OSError), open_folder(name, within) as held:  # it may be a link by now
            return self.is_over(held, depth)
        return False


def _parent() -> str | None:
    """Where scratch folders lie: root's in a folder of root's, others' where temporary files do (None)."""
    if os.geteuid():
        return None
    with suppress(FileExistsError):
        os.mkdir(OF_ROOT, 0o711)
        os.chmod(OF_ROOT, 0o711)
    found = os.lstat(OF_ROOT)
    if not stat.S_ISDIR(found.st_mode) or found.st_uid or found.st_mode & 0o022:
        raise OSError(f"{OF_ROOT} is not root's own folder; move it away")
    return OF_ROOT


def _held(path: str) -> int:
    """A descriptor that holds a folder for as long as its process lives. Raises OSError if it is held already."""
    held = os.open(path, FOLDER)
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(held)
        raise
    return held


def _left(beneath: str, age: float = _YOUNG) -> list[str]:
    """Scratch folders that are old enough not to be about to be held."""
    with suppress(OSError), os.scandir(beneath) as entries:
        old = time.time() - age
        found = [
            (one.path, one.stat(follow_symlinks=False)) for one in entries if one.name.startswith(_PREFIX)
        ]
        return [path for path, known in found if known.st_mtime < old and known.st_uid == os.geteuid()]
    return []


def _delete(path: str, held: int) -> None:
    """Delete a folder, as far as that is possible. held: it, open; it is closed."""
    try:
        os.rmdir(path)
    except OSError:
        empty_folder(held)
        with suppress(OSError):
            os.rmdir(path)
    finally:
        os.close(held)
