"""The file that a daemon in the background speaks into: written by a thread of its own, since a disk may hang."""

import atexit
import logging
import os
import queue
import time
from contextlib import suppress
from io import TextIOWrapper
from logging.handlers import QueueHandler, QueueListener, RotatingFileHandler
from pathlib import Path

SIZE = 5 << 20
WAITING = 10_000
"""Most records that wait for the disk; what comes then is left out."""
LAST = 2.0
"""Seconds for which the end waits until the last words are written."""


class PrivateFileHandler(RotatingFileHandler):
    """Writes a file for its owner alone, whatever the umask is; it is rotated once."""

    def __init__(self, path: Path, formatter: logging.Formatter) -> None:
        path.parent.mkdir(mode=0o700, exist_ok=True)
        super().__init__(path, maxBytes=SIZE, backupCount=1)
        self.setFormatter(formatter)

    def _open(self) -> TextIOWrapper:
        # A pipe that nobody reads must not hold up the start.
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK
        return open(os.open(self.baseFilename, flags, 0o600), "a", encoding=self.encoding)


class LogFileHandler(QueueHandler):
    """Hands records over to the thread that writes them; who speaks waits for nothing. Raises OSError."""

    def __init__(self, path: Path, formatter: logging.Formatter) -> None:
        file = PrivateFileHandler(path, formatter)
        self.waiting: queue.Queue[logging.LogRecord] = queue.Queue(WAITING)
        super().__init__(self.waiting)
        QueueListener(self.waiting, file).start()
        atexit.register(self._drain)

    def prepare(self, record: logging.LogRecord) -> logging.LogRecord:
        return record

    def enqueue(self, record: logging.LogRecord) -> None:
        with suppress(queue.Full):
            self.waiting.put_nowait(record)

    def _drain(self) -> None:
        until = time.monotonic() + LAST
        while self.waiting.unfinished_tasks and time.monotonic() < until:
            time.sleep(0.005)
