"""Leaves byte code unwritten where only a part of it may fit: Python takes a cut file for a whole one ever after.

CPython before 3.14 does not look how much was written. What is cut raises EOFError at each import, also when there is
room again: no command, and no daemon, could be started.
"""

import os
import resource
import sys
from contextlib import suppress

ROOM = 16 << 20
"""Bytes that must be free, and that a file may have."""


def has_room(folder: str) -> bool:
    """Whether byte code can be written whole in this folder."""
    most = resource.getrlimit(resource.RLIMIT_FSIZE)[0]
    with suppress(OSError):
        found = os.statvfs(folder)
        return found.f_bavail * found.f_frsize >= ROOM and (most == resource.RLIM_INFINITY or most >= ROOM)
    return False


if not has_room(os.path.dirname(__file__)):
    sys.dont_write_bytecode = True  # the programs that this one starts are told so, too
