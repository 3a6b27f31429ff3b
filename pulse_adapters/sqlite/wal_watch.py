"""Checks the frames of a -wal while its writer has it open: they are all that a kill leaves of the newest rows.

SQLite looks at them once more only at the next start, and then takes a bad frame for the end.
"""

import os
import sys
import threading
import time
import zlib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from pulse_adapters.sqlite.wal import FRAME, HEADER, Index, frame_sums, header_of, offset, parse_index

ALTERED = "was altered"
"""How the words end that name a frame."""

_CHUNK = 1 << 18
_SETTLED_NS = 1_000_000_000
"""A file that was changed less than so long ago may be changed again without a newer time."""


class WalWatch:
    """The acknowledged frames of a -wal that were found good, and whether they are what they were.

    A new frame is checked by SQLite's own sums, which take a millisecond; those of before by a sum over all of them.
    read_index: what the -shm says of the frames.
    """

    def __init__(self, wal: Path, read_index: Callable[[], Index | None]) -> None:
        self._wal, self._read_index = wal, read_index
        self._header, self._sums = b"", (0, 0)
        self._count = self._crc = self._changed = 0
        self._is_looking = threading.Lock()

    def is_as_found(self) -> bool:
        """Whether nothing has changed since all was found good; in a hundredth of the time that `fault` takes."""
        index = self._read_index()
        try:
            changed = os.stat(self._wal).st_ctime_ns
        except OSError:
            return False
        return index is not None and (index.frames, changed) == (self._count, self._changed)

    def fault(self, limit: int = sys.maxsize) -> str:
        """Which frame is not what was written, in words; empty if none is, or that can't be told now.

        No more than `limit` new ones are checked.
        """
        with self._is_looking:  # a look that nobody waits for any more may still be at it in its thread
            return self._fault(limit)

    def _fault(self, limit: int) -> str:
        index = self._read_index()
        if index is None or not index.frames:
            return ""
        try:
            file = os.open(self._wal, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
            try:
                words = self._look(file, index, limit)
            finally:
                os.close(file)
        except OSError:  # of the close, too: a server may say only then that it has failed
            return ""
        after = self._read_index() if words else None
        return f"{words} of {self._wal} {ALTERED}" if after and after.salt == index.salt else ""

    def _look(self, file: int, index: Index, limit: int) -> str:
        self._changed = 0
        header, changed = os.pread(file, HEADER, 0), os.fstat(file).st_ctime_ns
        found = header_of(header)
        if found is None or found.salt != index.salt:
            self._header = b""
            return "the header"
        is_begun_anew = header != self._header or index.frames < self._count
        if is_begun_anew or self._sum_up(file, found.size) != self._crc:
            self._header, self._sums, self._count, self._crc = header, found.sums, 0, 0
            limit = limit if is_begun_anew else index.frames
        last = min(index.frames, self._count + limit)
        while self._count < last:
            start = offset(self._count + 1, found.size)
            frame = os.pread(file, FRAME + found.size, start)
            sums = frame_sums(frame, found, self._sums)
            if sums is None:
                return f"frame {self._count + 1} (byte {start})"
            self._sums, self._crc = sums, zlib.crc32(frame, self._crc)
            self._count += 1
        self._changed = changed if changed < time.time_ns() - _SETTLED_NS else 0
        return ""

    def _sum_up(self, file: int, size: int) -> int:
        """The sum over the frames that were good."""
        crc, end = 0, offset(self._count + 1, size)
        for start in range(HEADER, end, _CHUNK):
            crc = zlib.crc32(os.pread(file, min(_CHUNK, end - start), start), crc)
        return crc


class OwnIndex:
    """What the -shm says that this process has open, over SQLite's own descriptor, which is searched for once.

    To open the file anew, and to close that, would end all locks of this process on it.
    """

    def __init__(self, shm: Path) -> None:
        self._shm, self._descriptor = shm, -1

    def __call__(self) -> Index | None:
        with suppress(OSError):
            if not _is_of(self._descriptor, os.stat(self._shm)):
                self._descriptor = own_descriptor(self._shm)
            return parse_index(os.pread(self._descriptor, 136, 0))
        return None


def own_descriptor(path: Path) -> int:
    """A descriptor over which this process has the file open, as SQLite has; -1 if it has none. Raises OSError."""
    known = os.stat(path)
    return next((one for one in map(int, os.listdir("/proc/self/fd")) if _is_of(one, known)), -1)


def _is_of(descriptor: int, known: os.stat_result) -> bool:
    with suppress(OSError):
        return os.path.samestat(os.fstat(descriptor), known)
    return False
