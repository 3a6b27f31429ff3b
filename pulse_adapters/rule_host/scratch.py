"""The one folder in which a child may write, and how full it is."""

import asyncio
import os
import shutil
import tempfile
from collections.abc import Iterator

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
            files, size = files + 1, size + entry.stat(follow_symlinks=False).st_blocks * 512
            if files > MOST_FILES or size > MOST_BYTES:
                return True
        self._empty_at = None if files else changed
        return False

    async def remove(self) -> None:
        """Delete it, a part at a time if there is much in it."""
        for number, entry in enumerate(_within(self.path)):
            if not entry.is_dir(follow_symlinks=False):
                os.unlink(entry.path)
            if number % _AT_ONCE == _AT_ONCE - 1:
                await asyncio.sleep(0)
        shutil.rmtree(self.path, ignore_errors=True)


def _within(path: str) -> Iterator[os.DirEntry[str]]:
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
