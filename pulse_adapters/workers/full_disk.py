"""Whether a disk is full, which a program that fails for it does not always say."""

import os
from contextlib import suppress

ROOM = 1 << 20
"""Bytes; a disk with less is full."""


def is_full(place: str | os.PathLike[str]) -> bool:
    """Whether the disk there has room for no further file. Blocks."""
    with suppress(OSError):
        found = os.statvfs(place)
        return found.f_bavail * found.f_frsize < ROOM or found.f_files > 0 == found.f_favail
    return False
