"""inotify watches on log files and their directories, through libc; what can't be watched is polled."""

import errno
from collections.abc import Callable, Iterable

from pulse_adapters.logs.file_discovery import PatternScan, name_matches
from pulse_adapters.logs.open_file import FollowedFile
from pulse_adapters.logs.rotated_files import RotatedFiles
from pulse_adapters.workers.inotify import (
    ATTRIB,
    CREATE,
    DELETE,
    DELETE_SELF,
    IGNORED,
    MODIFY,
    MOVE_SELF,
    MOVED_FROM,
    MOVED_TO,
    ONLY_DIRECTORY,
    OVERFLOW,
    Inotify,
)

OF_FILE = MODIFY | ATTRIB | DELETE_SELF | MOVE_SELF
OF_DIRECTORY = CREATE | MOVED_FROM | MOVED_TO | DELETE | DELETE_SELF | MOVE_SELF | ONLY_DIRECTORY

_LIMITS = (errno.ENOSPC, errno.EMFILE, errno.ENFILE, errno.ENOMEM)

Tell = Callable[[str, str], None]


class LogWatches:
    """Watches as far as the kernel's limits allow; a refused one is requested again at each scan.

    fileno: the descriptor that becomes readable on events, None without inotify; polled: whether a watch was refused
    since that was set to False. tell: called with (source, message).
    """

    def __init__(self, tell: Tell) -> None:
        self.tell = tell
        self.polled = False
        self._files: dict[int, RotatedFiles] = {}
        self._doubtful: set[int] = set()
        self._directories: dict[int, tuple[str, set[str]]] = {}
        self._inotify: Inotify | None = None
        try:
            self._inotify = Inotify()
        except OSError as error:
            self._tell_limit("instances", error)
        self.fileno = None if self._inotify is None else self._inotify.fileno

    def _tell_limit(self, what: str, error: OSError) -> None:
        why = f"inotify grants no more {what} ({error.strerror})"
        advice = f"raise fs.inotify.max_user_{what} with sysctl"
        self.tell("inotify", f"{why}; {advice}; until then files are looked at four times a second")

    def _watch(self, path: str, mask: int) -> int | None:
        """Watch a path: the watch's number, None if the path is gone, or the limit of watches is reached."""
        if self._inotify is not None:
            try:
                return self._inotify.add(path, mask)
            except OSError as error:
                if error.errno in _LIMITS:
                    self._tell_limit("watches", error)
        self.polled = True
        return None

    def follow(self, followed: FollowedFile, trail: RotatedFiles) -> None:
        """Watch an open file."""
        if followed.watch is None:
            followed.watch = self._watch(f"/proc/self/fd/{followed.file}", OF_FILE)
            if followed.watch is not None:
                self._files[followed.watch] = trail

    def doubt(self, path: str) -> None:
        """Watch a file that may be a copy, until it grows."""
        if (watch := self._watch(path, MODIFY)) is not None:
            self._doubtful.add(watch)

    def directories(self, scans: Iterable[PatternScan]) -> bool:
        """Watch the directories of these scans for new files; returns whether one was not watched before."""
        wanted: dict[str, set[str]] = {}
        for one in scans:
            for directory, names in one.watched.items():
                wanted.setdefault(directory, set()).update(names)
        before, kept = set(self._directories), set[int]()
        for directory, names in wanted.items():
            # Asked for anew each time, since another directory may bear the name by now.
            if (watch := self._watch(directory, OF_DIRECTORY)) is not None:
                self._directories[watch] = directory, names
                kept.add(watch)
        for watch in before - kept:
            self._remove(watch)
        return not kept <= before

    def forget(self, followed: FollowedFile) -> None:
        """Remove the watch of a file that is no longer followed."""
        if followed.watch is not None:
            self._remove(followed.watch)

    def _remove(self, watch: int) -> None:
        self._directories.pop(watch, None)
        self._files.pop(watch, None)
        if self._inotify is not None:
            self._inotify.remove(watch)

    def process_events(self, dirty: dict[str, RotatedFiles], concerns: Callable[[str, str], bool]) -> bool:
        """Process the pending events: trails that changed become dirty; returns whether a scan is due.

        concerns: whether a new name in a directory needs a scan, though no pattern matches it.
        """
        due = False
        for watch, mask, name in self._inotify.pending() if self._inotify else ():
            if mask & OVERFLOW:
                due = True
            elif trail := self._files.get(watch):
                dirty[trail.name] = trail
                due = due or bool(mask & ~MODIFY)
            elif watch in self._doubtful:
                self._doubtful.discard(watch)
                due = True
            elif watch in self._directories:
                directory, names = self._directories[watch]
                meant = any(name_matches(one, name) for one in names)
                is_gone = bool(mask & (DELETE_SELF | MOVE_SELF | IGNORED))
                due = due or meant or is_gone or concerns(directory, name)
        return due
