"""A few real blocks held back, so that a full disk does not end the log."""

import os
from pathlib import Path

from pulse_adapters.workers.plain_file import open_plain
from pulse_core.home import HomeLayout

SIZE = 4 * 1024 * 1024


class Reserve:
    """A file of 4 MiB that is given up when a commit finds no space; made again when there is room."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def make(self) -> bool:
        """Take the blocks, if they are not held already; False if there is no space for them."""
        try:
            handle = open_plain(self._path, os.O_RDWR | os.O_CREAT)
        except OSError:  # no inode is left, or nothing may be written here
            return False
        try:
            os.posix_fallocate(handle, 0, SIZE)
        except OSError:
            self.free()
            return False
        finally:
            os.close(handle)
        return True

    def free(self) -> bool:
        """Give the blocks back; False if there were none, or if the disk takes no change."""
        try:
            held = self._path.stat().st_blocks > 0
            self._path.unlink()
        except OSError:
            return False
        return held


def make_room(home: HomeLayout) -> None:
    """Free what exists for a full disk, or else what may be deleted at any time."""
    if home.reserve.exists():
        home.reserve.unlink()
        return
    for cache in (home.vitals, home.state):
        for path in home.path.glob(f"{cache.name}*"):
            path.unlink()
