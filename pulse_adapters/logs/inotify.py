"""inotify through libc: events when a file is written or a directory changes."""

import ctypes
import errno
import os
import struct
from collections.abc import Iterator
from typing import NamedTuple

MODIFY, ATTRIB = 0x2, 0x4
MOVED_FROM, MOVED_TO, CREATE, DELETE = 0x40, 0x80, 0x100, 0x200
DELETE_SELF, MOVE_SELF = 0x400, 0x800
OVERFLOW, IGNORED = 0x4000, 0x8000

OF_FILE = MODIFY | ATTRIB | DELETE_SELF | MOVE_SELF
OF_DIRECTORY = CREATE | MOVED_FROM | MOVED_TO | DELETE | DELETE_SELF | MOVE_SELF | 0x1000000  # IN_ONLYDIR

_LIMITS = (errno.ENOSPC, errno.EMFILE, errno.ENFILE, errno.ENOMEM)
_HEAD = struct.Struct("iIII")
_ROOM = 65_536
_LIBC = ctypes.CDLL(None, use_errno=True)


class InotifyEvent(NamedTuple):
    """One event: its watch, its mask, and the name in the watched directory."""

    watch: int
    mask: int
    name: str


class Exhausted(Exception):
    """This user's limit of instances or watches is reached."""


class Inotify:
    """One inotify instance; raises Exhausted if there can be none."""

    def __init__(self) -> None:
        self.file = _LIBC.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        if self.file < 0:
            raise Exhausted(_limit("instances", ctypes.get_errno()))

    def add(self, path: str, mask: int) -> int | None:
        """Watch a path: the watch's number, None if the path is gone. Raises Exhausted if the limit is reached."""
        watch = int(_LIBC.inotify_add_watch(self.file, os.fsencode(path), ctypes.c_uint32(mask)))
        if watch >= 0:
            return watch
        if (error := ctypes.get_errno()) in _LIMITS:
            raise Exhausted(_limit("watches", error))
        return None

    def remove(self, watch: int) -> None:
        """Remove a watch; one that is gone already is no error."""
        _LIBC.inotify_rm_watch(self.file, watch)

    def read(self) -> Iterator[InotifyEvent]:
        """Read the pending events; never waits."""
        while True:
            try:
                raw = os.read(self.file, _ROOM)
            except BlockingIOError:
                return
            yield from _events(raw)
            if len(raw) < _ROOM // 2:
                return

    def close(self) -> None:
        """Close the instance with all watches."""
        os.close(self.file)


def _events(raw: bytes) -> Iterator[InotifyEvent]:
    place = 0
    while place < len(raw):
        watch, mask, _, length = _HEAD.unpack_from(raw, place)
        place += _HEAD.size
        name = raw[place : place + length].rstrip(b"\0")
        place += length
        yield InotifyEvent(watch, mask, os.fsdecode(name))


def _limit(what: str, error: int) -> str:
    return (
        f"inotify grants no more {what} ({os.strerror(error)}); raise fs.inotify.max_user_{what} with sysctl"
    )
