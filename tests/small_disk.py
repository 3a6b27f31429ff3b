"""A directory on a small file system of its own, in memory."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.conftest import ROOT


@contextmanager
def small_disk(place: Path, size: str, is_demanded: bool = False) -> Iterator[Path]:
    """The directory, which is made if it is not there; size: as mount has it, `16m`. Skips where nobody can mount, or in CI
    fails if it is demanded."""
    place.mkdir(exist_ok=True)
    argv = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(place)]
    if subprocess.run(argv, check=False, timeout=60).returncode:
        refuse = pytest.fail if is_demanded and os.environ.get("CI") else pytest.skip
        refuse(ROOT if os.geteuid() else "nothing can be mounted here")
    try:
        yield place
    finally:
        subprocess.run(["umount", "--lazy", place], check=True, timeout=60)
