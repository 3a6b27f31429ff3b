"""Whether a file system takes changes, or fails."""

import errno
import os
from pathlib import Path


def is_read_only(directory: Path) -> bool:
    """Whether its file system takes no change at all: asked by making a file, since its flags don't always say so."""
    return _refusal(directory) == errno.EROFS


def is_failing(directory: Path) -> bool:
    """Whether its disk answers with errors, whatever is asked."""
    return _refusal(directory) in (errno.EIO, errno.ENXIO, errno.ENODEV)


def _refusal(directory: Path) -> int:
    try:
        os.close(os.open(directory, os.O_TMPFILE | os.O_WRONLY | os.O_CLOEXEC, 0o600))
    except OSError as error:
        return error.errno or 0
    return 0
