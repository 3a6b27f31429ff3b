"""The file that a daemon in the background speaks into."""

import logging
import os
from io import TextIOWrapper
from logging.handlers import RotatingFileHandler
from pathlib import Path

SIZE = 5 << 20


class PrivateFileHandler(RotatingFileHandler):
    """Writes a file for its owner alone, whatever the umask is; it is rotated once. Raises OSError."""

    def __init__(self, path: Path, formatter: logging.Formatter) -> None:
        path.parent.mkdir(mode=0o700, exist_ok=True)
        super().__init__(path, maxBytes=SIZE, backupCount=1)
        self.setFormatter(formatter)

    def _open(self) -> TextIOWrapper:
        # A pipe that nobody reads must not hold up the start.
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK
        return open(os.open(self.baseFilename, flags, 0o600), "a", encoding=self.encoding)
