"""inotify through libc: what happens to files and folders, without waiting for it."""

import ctypes
import os
import struct
from collections.abc import Iterator

CLOSE_WRITE, MODIFY, ATTRIB = 0x8, 0x2, 0x4
MOVED_FROM, MOVED_TO, CREATE, DELETE = 0x40, 0x80, 0x100, 0x200
DELETE_SELF, MOVE_SELF = 0x400, 0x800
OVERFLOW, IGNORED = 0x4000, 0x8000
ONLY_DIRECTORY = 0x1000000

_HEAD = struct.Struct("iIII")
_ROOM = 65_536
_LIBC = ctypes.CDLL(None, use_errno=True)


class Inotify:
    """One inotify instance. fileno: the descriptor that becomes readable on events. Raises OSError if there is none left."""

    def __init__(self) -> None:
        self.fileno = int(_LIBC.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC))
        if self.fileno < 0:
            raise _error()

    def close(self) -> None:
        """End all watches."""
        os.close(self.fileno)

    def add(self, path: str, mask: int) -> int:
        """Watch a path; the watch's number. Raises OSError."""
        watch = int(_LIBC.inotify_add_watch(self.fileno, os.fsencode(path), ctypes.c_uint32(mask)))
        if watch < 0:
            raise _error()
        return watch

    def remove(self, watch: int) -> None:
        """End a watch; one that is gone already is no error."""
        _LIBC.inotify_rm_watch(self.fileno, watch)

    def pending(self) -> Iterator[tuple[int, int, str]]:
        """Each event's watch, its mask, and the name in the watched directory; never waits."""
        more = True
        while more:
            try:
                raw = os.read(self.fileno, _ROOM)
            except BlockingIOError:
                return
            more = len(raw) >= _ROOM // 2
            place = 0
            while place < len(raw):
                watch, mask, _, length = _HEAD.unpack_from(raw, place)
                place += _HEAD.size + length
                yield watch, mask, os.fsdecode(raw[place - length : place].rstrip(b"\0"))


def _error() -> OSError:
    code = ctypes.get_errno()
    return OSError(code, os.strerror(code))
