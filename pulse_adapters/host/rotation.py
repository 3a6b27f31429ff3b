"""Cuts a log down while somebody writes it: what a long-lived process prints must not fill the disk."""

import os
import stat
from contextlib import suppress
from pathlib import Path

from pulse_adapters.host.outputs import ROTATE_AT

KEPT = ROTATE_AT
_PIECE = 1 << 20


def truncate_log(path: Path, kept: int = KEPT) -> int:
    """Move the last bytes of a log that is larger, 10 MiB, to `.1` and empty it; the bytes that this gave back.

    Whoever has it open to append goes on at its beginning. What is written in the moment between copying and
    emptying is lost. A disk that has no room for the copy gets its room all the same.
    """
    try:
        file = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return 0
    try:
        found = os.fstat(file)
        if not stat.S_ISREG(found.st_mode) or found.st_size <= kept:
            return 0
        copied = _copy_from(file, found.st_size - kept, Path(f"{path}.1"))
        os.ftruncate(file, 0)
        return found.st_size - copied
    finally:
        os.close(file)


def _copy_from(file: int, start: int, target: Path) -> int:
    """Copy all from `start` on, and what is added meanwhile, into the place of the target; 0 if that can't be done."""
    new = target.with_name(f"{target.name}.unfinished")
    at = start
    try:
        with new.open("wb") as copy:
            os.fchmod(copy.fileno(), 0o600)
            while piece := os.pread(file, _PIECE, at):
                copy.write(piece)
                at += len(piece)
        new.replace(target)
    except OSError:
        with suppress(OSError):
            new.unlink()
        return 0
    return at - start
