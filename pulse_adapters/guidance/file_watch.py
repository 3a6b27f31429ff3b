"""Tells at once that a file of a project was changed, through inotify; what can't be watched is found by the next look."""

import asyncio
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress

from pulse_adapters.workers.inotify import (
    CLOSE_WRITE,
    CREATE,
    DELETE,
    MOVED_FROM,
    MOVED_TO,
    ONLY_DIRECTORY,
    Inotify,
)
from pulse_core.guidance.protocol import FILES, FOLDER

_CHANGES = CLOSE_WRITE | MOVED_FROM | MOVED_TO | DELETE | ONLY_DIRECTORY
_NAMES = CREATE | MOVED_FROM | MOVED_TO | DELETE | ONLY_DIRECTORY


class FileWatch:
    """Calls `changed` in the running loop; `watch` and `keep` say of which projects, `close` ends it."""

    def __init__(self, changed: Callable[[], None]) -> None:
        self._changed = changed
        self._inotify: Inotify | None = None
        self._watches: dict[str, dict[int, frozenset[str]]] = {}

    def keep(self, roots: Collection[str]) -> None:
        """Watch no others than these any more; must be called before the first one is watched."""
        if self._inotify is None and roots:
            try:
                self._inotify = Inotify()
            except OSError:
                return
            asyncio.get_running_loop().add_reader(self._inotify.fileno, self._read)
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
            with suppress(OSError):
                if self._inotify is not None:
                    found[self._inotify.add(path, mask)] = names
        self._watches[root] = found
        self._remove(before.keys() - found.keys())

    def close(self) -> None:
        if self._inotify is not None:
            asyncio.get_running_loop().remove_reader(self._inotify.fileno)
            self._inotify.close()
            self._inotify = None

    def _remove(self, watches: Iterable[int]) -> None:
        if self._inotify is not None:
            for watch in watches:
                self._inotify.remove(watch)

    def _read(self) -> None:
        assert self._inotify is not None
        names_of = {watch: names for found in self._watches.copy().values() for watch, names in found.items()}
        said = [not name or name in names_of.get(watch, ()) for watch, _, name in self._inotify.pending()]
        if any(said):
            self._changed()
