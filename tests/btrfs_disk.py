"""A directory on a btrfs of its own, which writes what changes to another place, or on one whose blocks are small."""

import errno
import os
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.small_disk import disk_of_file


class BtrfsDisk:
    """The directory `path`, on a disk with room until it is filled."""

    def __init__(self, path: Path) -> None:
        self.path, self._ballast = path, path / "ballast"

    def fill(self) -> None:
        """Leave no room for data, and nothing in memory that is not on the disk."""
        for size in (65_536, 4_096):
            with self._ballast.open("ab", buffering=0) as file, suppress(OSError):
                while True:
                    file.write(bytes(size))
            subprocess.run(["sync", "-f", self.path], check=False, timeout=60)

    def take_snapshot(self) -> None:
        """Have all that is there be shared, so that whatever is written over needs room."""
        argv = ["btrfs", "subvolume", "snapshot", str(self.path), str(self.path / "snapshot")]
        subprocess.run(argv, capture_output=True, check=True, timeout=60)

    def make_room(self) -> None:
        """Take the ballast away, and wait until its room is free."""
        while True:
            try:
                os.truncate(self._ballast, 0)
                break
            except OSError as error:  # even this may need room
                if error.errno != errno.ENOSPC:
                    raise
        subprocess.run(["sync", "-f", self.path], check=False, timeout=60)


@contextmanager
def btrfs_disk(place: Path, mkfs: Sequence[str] = ("mkfs.btrfs", "-q", "-f")) -> Iterator[BtrfsDisk]:
    """Such a disk, or another one that this makes; skips where nobody can make one."""
    with disk_of_file(place, "btrfs", 128, mkfs) as (path, _):
        yield BtrfsDisk(path)
