"""inotify watches on files and directories; what can't be watched is polled."""

from collections.abc import Callable, Iterable

from pulse_adapters.logs import inotify
from pulse_adapters.logs.file_discovery import PatternScan, name_matches
from pulse_adapters.logs.inotify import Exhausted, Inotify
from pulse_adapters.logs.open_file import FollowedFile
from pulse_adapters.logs.rotated_files import RotatedFiles

Tell = Callable[[str, str], None]
_GONE = inotify.DELETE_SELF | inotify.MOVE_SELF | inotify.IGNORED


class LogWatches:
    """Watches as far as the kernel's limits allow; a refused one is requested again at each scan.

    polled: whether a watch was refused since the last `begin`. tell: called with (source, message).
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
        except Exhausted as error:
            self._poll(error)

    @property
    def fileno(self) -> int | None:
        """The descriptor that becomes readable on events; None without inotify."""
        return self._inotify.file if self._inotify else None

    def _poll(self, error: Exhausted) -> None:
        self.tell("inotify", f"{error}; until then files are looked at four times a second")

    def begin(self) -> None:
        """Begin a scan: every watch is requested again."""
        self.polled = False

    def _watch(self, path: str, mask: int) -> int | None:
        watch = None
        try:
            watch = self._inotify.add(path, mask) if self._inotify else None
        except Exhausted as error:
            self._poll(error)
        self.polled = self.polled or watch is None
        return watch

    def follow(self, followed: FollowedFile, trail: RotatedFiles) -> None:
        """Watch an open file."""
        if followed.watch is None:
            followed.watch = self._watch(f"/proc/self/fd/{followed.file}", inotify.OF_FILE)
            if followed.watch is not None:
                self._files[followed.watch] = trail

    def doubt(self, path: str) -> None:
        """Watch a file that may be a copy, until it grows."""
        if (watch := self._watch(path, inotify.MODIFY)) is not None:
            self._doubtful.add(watch)

    def directories(self, scans: Iterable[PatternScan]) -> bool:
        """Watch the directories of these scans for new files; returns whether one was not watched before."""
        wanted: dict[str, set[str]] = {}
        for one in scans:
            for directory, names in one.watched.items():
                wanted.setdefault(directory, set()).update(names)
        before = {directory: watch for watch, (directory, _) in self._directories.items()}
        kept: set[int] = set()
        for directory, names in wanted.items():
            # Asked for anew each time, since another directory may bear the name by now.
            if (watch := self._watch(directory, inotify.OF_DIRECTORY)) is not None:
                self._directories[watch] = directory, names
                kept.add(watch)
        for watch in before.values():
            if watch not in kept:
                self._remove(watch)
        return not kept <= set(before.values())

    def forget(self, followed: FollowedFile) -> None:
        """Remove the watch of a file that is no longer followed."""
        if followed.watch is not None:
            self._remove(followed.watch)

    def _remove(self, watch: int) -> None:
        self._directories.pop(watch, None)
        self._files.pop(watch, None)
        if self._inotify:
            self._inotify.remove(watch)

    def hear(self, dirty: dict[str, RotatedFiles], concerns: Callable[[str, str], bool]) -> bool:
        """Process the inotify events: trails that changed become dirty; returns whether a scan is due.

        concerns: whether a new name in a directory needs a scan, though no pattern matches it.
        """
        due = False
        for watch, mask, name in self._inotify.read() if self._inotify else ():
            if mask & inotify.OVERFLOW:
                due = True
            elif trail := self._files.get(watch):
                dirty[trail.name] = trail
                due = due or bool(mask & ~inotify.MODIFY)
            elif watch in self._doubtful:
                self._doubtful.discard(watch)
                due = True
            elif watch in self._directories:
                directory, names = self._directories[watch]
                meant = any(name_matches(one, name) for one in names)
                due = due or meant or bool(mask & _GONE) or concerns(directory, name)
        return due
