"""Whether a disk is full, which a program that fails for it does not always say."""

import os
import sys
from contextlib import suppress

ROOM = 1 << 20
"""Bytes; a disk with less is full."""


def free_room(found: os.statvfs_result) -> int:
    """Bytes that are free there: no bound where the file system does not tell its size, as ramfs and some of FUSE."""
    return found.f_bavail * found.f_frsize if found.f_blocks else sys.maxsize


def is_full(place: str | os.PathLike[str]) -> bool:
    """Whether the disk there has room for no further file. Blocks."""
    with suppress(OSError):
        found = os.statvfs(place)
        return free_room(found) < ROOM or found.f_files > 0 == found.f_favail
    return False
