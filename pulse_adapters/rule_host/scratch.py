"""The one folder in which a child may write, and how full it is."""

import asyncio
import os
import secrets
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from itertools import count, islice

MOST_BYTES, MOST_FILES = 64 * 1024 * 1024, 200
_AT_ONCE = 200
"""Files that are deleted before anybody else may go on."""


class Scratch:
    """A folder of its own for a child. user: whose it is, if not ours. Raises OSError."""

    def __init__(self, beneath: str | None, user: tuple[int, int] | None) -> None:
        self.path = tempfile.mkdtemp(prefix="pulse-rules-", dir=beneath)
        if user:
            os.chown(self.path, *user)
        self._empty_at: int | None = None

    def is_over(self) -> bool:
        """Whether there is more in it than may be; nearly free while nobody writes there."""
        changed = os.stat(self.path).st_mtime_ns
        if changed == self._empty_at:
            return False
        files = size = 0
        for entry in _within(self.path):
            files, size = files + 1, size + _size(entry)
            if files > MOST_FILES or size > MOST_BYTES:
                return True
        self._empty_at = None if files else changed
        return False

    async def remove(self) -> None:
        """Delete it, however deep it is, a part at a time; what can't be deleted is left."""
        prefix, names = secrets.token_hex(8), count()
        with suppress(OSError):
            while entries := _some(self.path):
                for entry in entries:
                    if not entry.is_dir(follow_symlinks=False):
                        os.unlink(entry.path)
                        continue
                    os.chmod(entry.path, 0o700)
                    inside = _some(entry.path)
                    for one in inside:
                        os.rename(one.path, os.path.join(self.path, f"{prefix}-{next(names)}"))
                    if not inside:
                        os.rmdir(entry.path)
                await asyncio.sleep(0)
            os.rmdir(self.path)


def _some(path: str) -> list["os.DirEntry[str]"]:
    with os.scandir(path) as entries:
        return list(islice(entries, _AT_ONCE))


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
