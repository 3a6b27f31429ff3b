"""A directory on a small file system of its own, in memory or in a file there."""

import os
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.conftest import ROOT


@contextmanager
def small_disk(place: Path, size: str, is_demanded: bool = False, kind: str = "tmpfs") -> Iterator[Path]:
    """The directory, which is made if it is not there; size: as mount has it, `16m`, which
    ramfs passes over. Skips where nobody can mount, or in CI
    fails if it is demanded."""
    place.mkdir(exist_ok=True)
    argv = ["mount", "-t", kind, "-o", f"size={size}", kind, str(place)]
    if subprocess.run(argv, check=False, timeout=60).returncode:
        refuse = pytest.fail if is_demanded and os.environ.get("CI") else pytest.skip
        refuse(ROOT if os.geteuid() else "nothing can be mounted here")
    try:
        yield place
    finally:
        subprocess.run(["umount", "--lazy", place], check=True, timeout=60)


@contextmanager
def disk_of_file(place: Path, name: str, mebibytes: int, mkfs: Sequence[str]) -> Iterator[tuple[Path, Path]]:
    """A directory of this name on a file system that `mkfs` makes of so large a file, and the folder of that file, `image`,
    where there is a tenth more room. Skips where nobody can make one."""
    with small_disk(place / "below", f"{mebibytes * 11 // 10}m") as below:
        image, path = below / "image", place / name
        path.mkdir()
        with image.open("wb") as file:
            file.truncate(mebibytes << 20)
        with suppress(OSError):
            subprocess.run([*mkfs, image], capture_output=True, check=False, timeout=60)
        image.write_bytes(image.read_bytes())  # what the file system itself needs has its room
        if subprocess.run(["mount", "-o", "loop", image, path], check=False, timeout=60).returncode:
            pytest.skip(f"nothing that {mkfs[0]} makes can be mounted of a file here")
        try:
            yield path, below
        finally:
            subprocess.run(["umount", "--lazy", path], check=True, timeout=60)
