"""Whether a file system takes changes."""

import errno
import os
from pathlib import Path


def is_read_only(directory: Path) -> bool:
    """Whether its file system takes no change at all: asked by making a file, since its flags don't always say so."""
    try:
        os.close(os.open(directory, os.O_TMPFILE | os.O_WRONLY | os.O_CLOEXEC, 0o600))
    except OSError as error:
        return error.errno == errno.EROFS
    return False
