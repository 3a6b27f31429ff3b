"""Deletes files that were not modified for long below a directory, and nothing anywhere else.

Every directory on the way is held by a descriptor, and paths are resolved one name at a time (openat): a rename or
link made meanwhile can't lead elsewhere.
"""

import os
import stat
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from pulse_adapters.files.in_use import FilesInUse, FileTaken, MountDevices, exclusive_access
from pulse_adapters.files.ledger import Ledger
from pulse_adapters.files.safe_directory import LIST, SafeDirectory, mount_of
from pulse_adapters.files.worker import Deadline, describe_os_error

DEEPEST = 100
SHOWN, SHOWN_CHARS = 100, 20_000
"""What a dry run tells one by one: so many files, with names of so many characters together."""


@dataclass(frozen=True)
class CleanOrder:
    """What may be deleted: files not modified since `before_ns`, up to `limit` bytes; dry: delete nothing."""

    before_ns: int
    limit: int | None = None
    dry: bool = False
    effect: str = ""


@dataclass
class CleanReport:
    """What was deleted (or would be), and what was kept, by reason."""

    files: int = 0
    directories: int = 0
    bytes: int = 0
    kept: Counter[str] = field(default_factory=Counter)
    would: list[list[Any]] = field(default_factory=list)

    def show(self, path: str, size: int) -> None:
        """Add a file that would be deleted, while there is room for it in the answer."""
        if len(self.would) < SHOWN and sum(len(shown) for shown, _ in self.would) + len(path) < SHOWN_CHARS:
            self.would.append([path, size])


@dataclass(frozen=True)
class DirectoryLevel:
    """A directory of the walk: its descriptor, name and path, its status when it was entered, and its entries left."""

    fd: int
    name: str
    path: str
    said: os.stat_result
    entries: "os._ScandirIterator[str]"

    def close(self) -> None:
        """Close it."""
        self.entries.close()
        os.close(self.fd)


class Cleaner:
    """Cleans one root."""

    def __init__(
        self,
        root: SafeDirectory,
        order: CleanOrder,
        used: FilesInUse,
        ledger: Ledger,
        tally: CleanReport,
        deadline: Deadline,
    ) -> None:
        self.root, self.order, self.used = root, order, used
        self.ledger, self.tally, self.deadline = ledger, tally, deadline
        self._st_dev, self._mount = os.fstat(root.fd).st_dev, mount_of(root.fd)
        self._device = MountDevices().device(self._mount)

    def clean(self) -> None:
        """Clean the whole tree, deepest first, but keep the root itself."""
        levels = [self._level(os.dup(self.root.fd), "", self.root.path)]
        try:
            while levels:
                self.deadline.check()
                if entry := next(levels[-1].entries, None):
                    self._look_at(entry, levels)
                else:
                    self._leave(levels)
        finally:
            for level in levels:
                level.close()

    def _look_at(self, entry: "os.DirEntry[str]", levels: list[DirectoryLevel]) -> None:
        try:
            if entry.is_dir(follow_symlinks=False):
                self._descend(levels, entry.name)
            else:
                self._consider(levels[-1], entry.name)
        except FileNotFoundError:
            return
        except FileTaken:
            self.tally.kept["open"] += 1
        except OSError as error:
            self.tally.kept[describe_os_error(error)] += 1

    def _level(self, fd: int, name: str, path: str) -> DirectoryLevel:
        try:
            return DirectoryLevel(fd, name, path, os.fstat(fd), os.scandir(fd))
        except OSError:
            os.close(fd)
            raise

    def _descend(self, levels: list[DirectoryLevel], name: str) -> None:
        above = levels[-1]
        if len(levels) > DEEPEST:
            self.tally.kept["too deep"] += 1
            return
        level = self._level(os.open(name, LIST, dir_fd=above.fd), name, os.path.join(above.path, name))
        if level.said.st_dev != self._st_dev or mount_of(level.fd) != self._mount:
            self.tally.kept["on another file system"] += 1
            level.close()
        else:
            levels.append(level)

    def _leave(self, levels: list[DirectoryLevel]) -> None:
        """Leave a directory, and delete it if it is old and empty."""
        level = levels.pop()
        held = self.root.holds(level.fd)
        level.close()
        touched = max(level.said.st_mtime_ns, level.said.st_ctime_ns)
        if not levels or self.order.dry or touched > self.order.before_ns or not held:
            return
        if not self.used.holds(self._device, level.said.st_ino, level.path) and self.root.holds(
            levels[-1].fd
        ):
            with suppress(OSError):  # it is not empty, or not ours
                os.rmdir(level.name, dir_fd=levels[-1].fd)
                self.tally.directories += 1

    def _consider(self, level: DirectoryLevel, name: str) -> None:
        path = os.path.join(level.path, name)
        said = os.lstat(name, dir_fd=level.fd)
        if reason := self._reason_kept(said, path):
            self.tally.kept[reason] += 1
        else:
            self._delete(level, name, path, said)

    def _reason_kept(self, said: os.stat_result, path: str) -> str:
        """Why a file is kept; empty if it may be deleted."""
        if not (stat.S_ISREG(said.st_mode) or stat.S_ISLNK(said.st_mode)):
            return "no plain file"
        if max(said.st_mtime_ns, said.st_ctime_ns, said.st_atime_ns) > self.order.before_ns:
            return "young"
        if said.st_nlink > 1:
            return "has another name"
        if self.used.holds(self._device, said.st_ino, path):
            return "open"
        if self.order.limit is not None and self.tally.bytes + size_on_disk(said) > self.order.limit:
            return "over the limit"
        return ""

    def _delete(self, level: DirectoryLevel, name: str, path: str, said: os.stat_result) -> None:
        if self.order.dry:
            self.tally.show(path, size_on_disk(said))
        elif stat.S_ISLNK(said.st_mode):
            self._unlink(level, name)
        else:
            with exclusive_access(name, level.fd, said.st_ino):
                self._unlink(level, name)
        self.tally.files += 1
        self.tally.bytes += size_on_disk(said)
        if not self.order.dry:
            times = {"at_us": time.time_ns() // 1000, "mtime_us": said.st_mtime_ns // 1000}
            self.ledger.add(path=path, size=size_on_disk(said), effect=self.order.effect, **times)

    def _unlink(self, level: DirectoryLevel, name: str) -> None:
        if not self.root.holds(level.fd):
            raise OSError(0, "was moved out of the root meanwhile")
        os.unlink(name, dir_fd=level.fd)


def size_on_disk(said: os.stat_result) -> int:
    """The bytes that a file occupies on the disk."""
    return said.st_blocks * 512
