"""Whether a file system takes changes and new files, or fails."""

import errno
import os
from pathlib import Path

NO_NEW_FILE = (errno.EROFS, errno.ENOSPC, errno.EDQUOT)
"""Why no file can be made, though files that are there may serve: nothing may be written, no inode or no room is left."""


def is_read_only(directory: Path) -> bool:
    """Whether its file system takes no change at all: asked by making a file, since its flags don't always say so."""
    return _refusal(directory) == errno.EROFS


def why_no_new_file(directory: Path) -> str:
    """Why its file system takes no new file, in words; empty if it does, or fails otherwise."""
    refusal = _refusal(directory)
    if refusal == errno.EROFS:
        return "its file system is read-only: make it writable"
    return "its file system takes no new file: free inodes or room" if refusal in NO_NEW_FILE else ""


def is_failing(directory: Path) -> bool:
    """Whether its disk answers with errors, whatever is asked."""
    return _refusal(directory) in (errno.EIO, errno.ENXIO, errno.ENODEV)


def _refusal(directory: Path) -> int:
    try:
        os.close(os.open(directory, os.O_TMPFILE | os.O_WRONLY | os.O_CLOEXEC, 0o600))
    except OSError as error:
        return error.errno or 0
    return 0
