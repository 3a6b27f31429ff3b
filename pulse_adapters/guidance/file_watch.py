"""Tells at once that a file of a project was changed, through inotify; what can't be watched is found by the next look."""

import asyncio
import ctypes
import os
import struct
from collections.abc import Callable, Collection, Iterable

from pulse_core.guidance.protocol import FILES, FOLDER

CLOSE_WRITE, MOVED_FROM, MOVED_TO, CREATE, DELETE = 0x8, 0x40, 0x80, 0x100, 0x200
ONLY_DIRECTORY = 0x1000000
_CHANGES = CLOSE_WRITE | MOVED_FROM | MOVED_TO | DELETE | ONLY_DIRECTORY
_NAMES = CREATE | MOVED_FROM | MOVED_TO | DELETE | ONLY_DIRECTORY
_HEAD = struct.Struct("iIII")
_ROOM = 65_536
_LIBC = ctypes.CDLL(None, use_errno=True)


class FileWatch:
    """Calls `changed` in the running loop; `watch` and `keep` say of which projects, `close` ends it."""

    def __init__(self, changed: Callable[[], None]) -> None:
        self._changed = changed
        self._descriptor: int | None = None
        self._watches: dict[str, dict[int, frozenset[str]]] = {}

    def keep(self, roots: Collection[str]) -> None:
        """Watch no others than these any more; must be called before the first one is watched."""
        if self._descriptor is None and roots:
            descriptor = int(_LIBC.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC))
            if descriptor < 0:
                return
            self._descriptor = descriptor
            asyncio.get_running_loop().add_reader(descriptor, self._read)
        for root in self._watches.keys() - set(roots):
            self._remove(self._watches.pop(root))

    def watch(self, root: str) -> None:
        """Watch this project; a folder that bears its name by now is watched instead of the one before.

        For threads: its file system may never answer.
        """
        before, found = self._watches.get(root, {}), dict[int, frozenset[str]]()
        for path, mask, names in (
            (root, _NAMES, frozenset({FOLDER})),
            (f"{root}/{FOLDER}", _CHANGES, frozenset(FILES)),
        ):
            if self._descriptor is not None:
                watch = int(
                    _LIBC.inotify_add_watch(self._descriptor, os.fsencode(path), ctypes.c_uint32(mask))
                )
                if watch >= 0:
                    found[watch] = names
        self._watches[root] = found
        self._remove(before.keys() - found.keys())

    def close(self) -> None:
        """Watch nothing more."""
        if self._descriptor is not None:
            asyncio.get_running_loop().remove_reader(self._descriptor)
            os.close(self._descriptor)
            self._descriptor = None

    def _remove(self, watches: Iterable[int]) -> None:
        for watch in watches:
            _LIBC.inotify_rm_watch(self._descriptor, watch)

    def _read(self) -> None:
        assert self._descriptor is not None
        try:
            raw = os.read(self._descriptor, _ROOM)
        except BlockingIOError:
            return
        names_of = {watch: names for found in self._watches.copy().values() for watch, names in found.items()}
        place, is_meant = 0, False
        while place < len(raw):
            watch, _, _, length = _HEAD.unpack_from(raw, place)
            place += _HEAD.size + length
            name = os.fsdecode(raw[place - length : place].rstrip(b"\0"))
            is_meant = is_meant or not name or name in names_of.get(watch, ())
        if is_meant:
            self._changed()
