"""Truncates a log while a process writes it: the output of a long-lived process must not fill the disk."""

import os
import stat
from contextlib import suppress
from pathlib import Path

from pulse_adapters.host.outputs import ROTATE_AT

KEPT = ROTATE_AT
_PIECE = 1 << 20


def truncate_log(path: Path, kept: int = KEPT) -> int:
    """Move the last bytes (10 MiB) of a larger log to `.1` and empty it; returns the bytes freed.

    A process that has it open to append goes on at its beginning. What is written between copying and
    truncating is lost. If the disk has no room for the copy, the log is truncated all the same.
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
    """Replace the target by all from `start` on, with what is appended meanwhile; 0 if that fails."""
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
