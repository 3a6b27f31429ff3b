"""A directory on which nobody can write any more, whatever still has files open there, until it is writable again."""

import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def read_only(place: Path) -> Iterator[Callable[[], None]]:
    """The directory is read-only inside; what is given back makes it writable again. Skips where nobody can mount."""

    def mount(*argv: str) -> None:
        subprocess.run(["mount", *argv, str(place)], check=True, capture_output=True, timeout=60)

    try:
        mount("--bind", str(place))
    except subprocess.CalledProcessError as error:
        pytest.skip(f"nothing can be mounted here: {error.stderr.decode().strip()}")
    try:
        mount("-o", "remount,bind,ro")
        yield lambda: mount("-o", "remount,bind,rw")
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True, timeout=60)
