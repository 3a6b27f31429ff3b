"""The program that deletes files not modified for long below the roots of its order, and nothing anywhere else.

Every directory on the way is held by a descriptor, and paths are resolved one name at a time (openat): a rename or
link made meanwhile can't lead elsewhere.
"""

import json
import os
import stat
import time
from collections import Counter, deque
from collections.abc import Mapping
from contextlib import closing, suppress
from dataclasses import dataclass, field
from typing import Any

from pulse_adapters.files import worker
from pulse_adapters.files.in_use import FileTaken, MountDevices, exclusive_access, find_files_in_use
from pulse_adapters.files.safe_directory import (
    LIST,
    SafeDirectory,
    is_near,
    mount_of,
    open_directory,
    reason_forbidden,
)
from pulse_adapters.files.worker import Deadline, OrderRefused, OutOfTime, describe_os_error
from pulse_adapters.workers.plain_file import open_plain
from pulse_adapters.workers.users import expand_home

DEEPEST = 100
SHOWN, SHOWN_CHARS = 100, 20_000
"""What a dry run tells one by one: so many files, with names of so many characters together."""

LARGEST = 8 << 20
"""Bytes after which a new ledger is begun; one older file is kept as `.1`."""

WAITING = 1_000
LEDGER = os.O_WRONLY | os.O_APPEND | os.O_CREAT


class Ledger:
    """Records deletions in a file, one JSON line each; a full disk loses lines, but does not stop the deletion."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._waiting: deque[bytes] = deque()
        self._lost = 0

    @property
    def unwritten(self) -> int:
        """The number of lines that are not in the file: they wait for room, or were dropped since too many did."""
        return self._lost + len(self._waiting)

    def add(self, **line: Any) -> None:
        """Add a line, and write what waits as far as the disk has room."""
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
        with suppress(FileNotFoundError):
            if os.lstat(self._path).st_size > LARGEST:
                os.replace(self._path, f"{self._path}.1")
        os.makedirs(os.path.dirname(self._path), mode=0o700, exist_ok=True)
        file = open_plain(self._path, LEDGER)
        try:
            if (written := os.write(file, line)) < len(line):
                os.ftruncate(file, os.fstat(file).st_size - written)
                raise OSError("no room for a whole line")
        finally:
            os.close(file)


@dataclass
class CleanReport:
    """What was deleted (or would be), and what was kept, by reason; of each root its real path, or why it was skipped.

    faults: what is wrong with roots that could not be cleaned.
    """

    files: int = 0
    directories: int = 0
    bytes: int = 0
    kept: Counter[str] = field(default_factory=Counter)
    would: list[list[Any]] = field(default_factory=list)
    real: dict[str, str] = field(default_factory=dict)
    passed: dict[str, str] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)
    finished: bool = True

    def show(self, path: str, size: int) -> None:
        """Add a file that would be deleted, while there is room for it in the answer."""
        if len(self.would) < SHOWN and sum(len(shown) for shown, _ in self.would) + len(path) < SHOWN_CHARS:
            self.would.append([path, size])


def printable_path(path: str) -> str:
    """A path that can be encoded: surrogates become `?`."""
    return path.encode("utf-8", "replace").decode()


class Cleaner:
    """Cleans one root."""

    def __init__(self, root: SafeDirectory, run: "CleanRun") -> None:
        self.root, self.run, self.report = root, run, run.report
        self._st_dev, self._mount = os.fstat(root.fd).st_dev, mount_of(root.fd)
        self._device = MountDevices().device(self._mount)

    def clean(self) -> None:
        """Clean the whole tree, deepest first, but keep the root itself."""
        self._clean_in(self.root.fd, self.root.path, 0)

    def _clean_in(self, fd: int, path: str, depth: int) -> None:
        with os.scandir(fd) as entries:
            for entry in entries:
                self.run.deadline.check()
                inner = os.path.join(path, entry.name)
                try:
                    if entry.is_dir(follow_symlinks=False):
                        self._clean_directory(fd, entry.name, inner, depth + 1)
                    else:
                        self._delete(fd, entry.name, inner)
                except FileNotFoundError:
                    continue
                except FileTaken:
                    self.report.kept["open"] += 1
                except OSError as error:
                    self.report.kept[describe_os_error(error)] += 1

    def _clean_directory(self, parent: int, name: str, path: str, depth: int) -> None:
        """Clean a directory, and delete it if it is old and empty then."""
        if depth > DEEPEST:
            self.report.kept["too deep"] += 1
            return
        fd = os.open(name, LIST, dir_fd=parent)
        try:
            said = os.fstat(fd)
            if said.st_dev != self._st_dev or mount_of(fd) != self._mount:
                self.report.kept["on another file system"] += 1
                return
            self._clean_in(fd, path, depth)
            is_here = self.root.holds(fd)
        finally:
            os.close(fd)
        if self.run.dry or max(said.st_mtime_ns, said.st_ctime_ns) > self.run.before_ns or not is_here:
            return
        if not self.run.used.holds(self._device, said.st_ino, path) and self.root.holds(parent):
            with suppress(OSError):  # it is not empty, or not ours
                os.rmdir(name, dir_fd=parent)
                self.report.directories += 1

    def _reason_kept(self, said: os.stat_result, path: str) -> str:
        """Why a file is kept; empty if it may be deleted."""
        if not (stat.S_ISREG(said.st_mode) or stat.S_ISLNK(said.st_mode)):
            return "no plain file"
        if max(said.st_mtime_ns, said.st_ctime_ns, said.st_atime_ns) > self.run.before_ns:
            return "young"
        if said.st_nlink > 1:
            return "has another name"
        if self.run.used.holds(self._device, said.st_ino, path):
            return "open"
        limit = self.run.order["limit_bytes"]
        if limit is not None and self.report.bytes + size_on_disk(said) > limit:
            return "over the limit"
        return ""

    def _delete(self, parent: int, name: str, path: str) -> None:
        said = os.lstat(name, dir_fd=parent)
        if reason := self._reason_kept(said, path):
            self.report.kept[reason] += 1
            return
        if self.run.dry:
            self.report.show(path, size_on_disk(said))
        elif stat.S_ISLNK(said.st_mode):
            self._unlink(parent, name)
        else:
            with exclusive_access(name, parent, said.st_ino):
                self._unlink(parent, name)
        self.report.files += 1
        self.report.bytes += size_on_disk(said)
        if not self.run.dry:
            times = {"at_us": time.time_ns() // 1000, "mtime_us": said.st_mtime_ns // 1000}
            self.run.ledger.add(path=path, size=size_on_disk(said), effect=self.run.order["effect"], **times)

    def _unlink(self, parent: int, name: str) -> None:
        if not self.root.holds(parent):
            raise OSError(0, "was moved out of the root meanwhile")
        os.unlink(name, dir_fd=parent)


def size_on_disk(said: os.stat_result) -> int:
    """The bytes that a file occupies on the disk."""
    return said.st_blocks * 512


class CleanRun:
    """One run over the roots of an order."""

    def __init__(self, order: Mapping[str, Any], deadline: Deadline) -> None:
        self.order, self.deadline = order, deadline
        self.before_ns = time.time_ns() - order["older_than_us"] * 1000
        self.dry = order["dry_run"]
        self.report, self.ledger, self.used = CleanReport(), Ledger(order["ledger"]), find_files_in_use()

    def clean(self, text: str) -> None:
        """Clean a root; one that can't be cleaned is reported and does not stop the others."""
        try:
            with closing(open_directory(expand_home(text))) as root:
                self._clean(text, root)
        except FileNotFoundError:
            self.report.passed[text] = "is not there"
        except OrderRefused as error:
            self.report.faults.append(str(error))
        except OSError as error:
            self.report.faults.append(f"{text}: {describe_os_error(error)}")

    def _clean(self, text: str, root: SafeDirectory) -> None:
        order, real = self.order, printable_path(root.path)
        if fault := reason_forbidden(root.path, order["home"], order["own"]):
            raise OrderRefused(fault)
        if (known := order["known"].get(text, real)) != real:
            raise OrderRefused(f"{text} leads to {real} now, and led to {known} before")
        if order["near"] and not is_near(root, order["near"]):
            self.report.passed[text] = "is on another file system"
        elif not root.lock():
            self.report.passed[text] = "is being cleaned already"
        else:
            self.report.real[text] = real
            Cleaner(root, self).clean()


def clean_roots(order: Mapping[str, Any], deadline: Deadline) -> Mapping[str, Any]:
    """Clean every root; what was done."""
    run = CleanRun(order, deadline)
    try:
        for text in order["roots"]:
            run.clean(text)
    except OutOfTime:
        run.report.finished = False
    run.ledger.flush()
    kept = dict(run.report.kept.most_common(20))
    return {**vars(run.report), "kept": kept, "unwritten": run.ledger.unwritten}


if __name__ == "__main__":
    worker.run_order(clean_roots, idle=False)
