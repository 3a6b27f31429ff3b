"""A directory on an ext4 whose disk promises more than it has: what can't be written is lost after it was taken."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.small_disk import disk_of_file


class ThinDisk:
    """The directory `path`, on a disk with room until it is filled."""

    def __init__(self, path: Path, below: Path) -> None:
        self.path, self._below, self._ballast = path, below, below / "ballast"

    def fill(self) -> None:
        """Leave the disk no block, though its file system has some."""
        with self._ballast.open("ab", buffering=0) as file, suppress(OSError):
            while True:
                file.write(bytes(4096))

    def make_room(self) -> None:
        self._ballast.unlink()

    def _at_one_moment(self) -> bytes:
        """What is on the disk: the kernel may be writing it while it is read, so it is read until it stays the same."""
        image, found = self._below / "image", b""
        while found != (found := image.read_bytes()):
            pass
        return found

    @contextmanager
    def after_power_cut(self) -> Iterator[Path]:
        """The directory as it would be found if the power failed now."""
        copy, path = self._below.with_name("copy"), self._below.with_name("found")
        path.mkdir(exist_ok=True)
        copy.write_bytes(self._at_one_moment())
        subprocess.run(["mount", "-o", "loop", copy, path], check=True, timeout=60)
        try:
            yield path
        finally:
            subprocess.run(["umount", path], check=True, timeout=60)


@contextmanager
def thin_disk(place: Path) -> Iterator[ThinDisk]:
    """Such a disk; skips where nobody can make one. All that the file system itself needs has its room."""
    mkfs = ("mkfs.ext4", "-q", "-F", "-b", "4096", "-J", "size=4", "-E", "lazy_itable_init=0")
    with disk_of_file(place, "thin", 32, mkfs) as (path, below):
        device = os.stat(path).st_dev
        queue = Path(f"/sys/dev/block/{os.major(device)}:{os.minor(device)}/queue/max_sectors_kb")
        queue.write_text("4")  # a loop device says of a write that it has done in part that it was done
        if subprocess.run(["fstrim", path], check=False, timeout=60).returncode:
            pytest.skip("this loop device gives no room back")
        yield ThinDisk(path, below)
