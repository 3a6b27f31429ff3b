"""Records deletions, one JSON line each; a full disk loses lines, but does not stop the deletion."""

import json
import os
from collections import deque
from contextlib import suppress
from typing import Any

LARGEST = 8 << 20
WAITING = 1_000
FLAGS = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class Ledger:
    """Appends to a file, which is rotated at 8 MiB, with one old file kept as `.1`.

    unwritten: lines that wait for room, or were dropped because too many did.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._file = -1
        self._size = 0
        self._waiting: deque[bytes] = deque()
        self._lost = 0

    @property
    def unwritten(self) -> int:
        """The number of lines that are not in the file."""
        return self._lost + len(self._waiting)

    def add(self, **line: Any) -> None:
        """Add a line."""
        self._waiting.append(json.dumps(line).encode() + b"\n")
        if len(self._waiting) > WAITING:
            self._waiting.popleft()
            self._lost += 1
        self.flush()

    def flush(self) -> None:
        """Write the waiting lines, as far as the disk has room."""
        with suppress(OSError):
            while self._waiting:
                self._write(self._waiting[0])
                self._waiting.popleft()

    def _write(self, line: bytes) -> None:
        if self._file < 0 or self._size > LARGEST:
            self._open()
        written = os.write(self._file, line)
        self._size += written
        if written < len(line):  # the disk is full in the middle of it: take it back
            os.ftruncate(self._file, self._size - written)
            self._size -= written
            raise OSError("no room for a whole line")

    def _open(self) -> None:
        self.close()
        with suppress(FileNotFoundError):
            if os.lstat(self._path).st_size > LARGEST:
                os.replace(self._path, f"{self._path}.1")
        os.makedirs(os.path.dirname(self._path), mode=0o700, exist_ok=True)
        self._file = os.open(self._path, FLAGS, 0o600)
        self._size = os.fstat(self._file).st_size

    def close(self) -> None:
        """Close the file."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1
