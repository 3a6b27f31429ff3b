"""The folder `.pulse` of a project, opened once: what is reached through it lies in the project, whoever swaps in links."""

import errno
import fcntl
import hashlib
import os
import signal
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path

from pulse_adapters.workers.plain_file import locked, open_plain, replace_plain
from pulse_core.guidance.protocol import FOLDER
from pulse_core.guidance.service import FileObservation

LARGEST = 64 << 20
"""Bytes of a file that is read; a larger one counts as none."""
LOCK_WAIT_S, LOCK_STEP_S = 1.0, 0.002
MOST_READINGS = 10
"""Of one file that changes while it is read."""
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_BLOCK = 1 << 20
_MODE = 0o644
"""Other tools are to read it, also those of other users."""


class ProjectFolder:
    """An open `.pulse`. Raises OSError as the system does, and PermissionError for what points out of the project."""

    def __init__(self, root: str, descriptor: int) -> None:
        self._root, self.descriptor = root, descriptor

    @classmethod
    @contextmanager
    def open(cls, root: str) -> Iterator["ProjectFolder"]:
        """The folder; raises OSError if there is none, or none in the project."""
        descriptor = os.open(f"{root}/{FOLDER}", _FOLDER)
        try:
            _require_within(descriptor, root)
            yield cls(root, descriptor)
        finally:
            os.close(descriptor)

    @contextmanager
    def file(self, name: str) -> Iterator[int]:
        """A regular file in it, or one in the project that a link leads to."""
        descriptor = open_plain(name, within=self.descriptor, follow=True)
        try:
            _require_within(descriptor, self._root)
            yield descriptor
        finally:
            os.close(descriptor)

    def observe(self, name: str) -> tuple[FileObservation, int]:
        """What a file holds, and when it was written last (nanoseconds); read again if that changes meanwhile."""
        with self.file(name) as descriptor:
            for _ in range(MOST_READINGS):
                before = os.fstat(descriptor)
                found = FileObservation(*_hashed(descriptor))
                after = os.fstat(descriptor)
                if (before.st_mtime_ns, before.st_size) == (after.st_mtime_ns, after.st_size):
                    break
            return found, after.st_mtime_ns

    def is_being_written(self, name: str) -> bool:
        """Whether somebody has a file open to write it, as far as this user is told: the kernel grants no lease then.

        It is held for no longer than that takes; the signal that its end would send is one that is ignored.
        """
        with suppress(OSError), self.file(name) as descriptor:
            try:
                fcntl.fcntl(descriptor, fcntl.F_SETSIG, signal.SIGURG)
                fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_RDLCK)
                fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_UNLCK)
            except BlockingIOError:
                return True
        return False

    def read(self, name: str, most: int) -> bytes:
        """The first bytes of a file."""
        with self.file(name) as descriptor, open(descriptor, "rb", closefd=False) as file:
            return file.read(most)

    def locked(self) -> AbstractContextManager[None]:
        """Nobody else publishes here meanwhile. Raises OSError if somebody else has the lock for too long."""
        return locked(self.descriptor, LOCK_WAIT_S, LOCK_STEP_S)

    def create(self, name: str, text: str) -> None:
        """A new file with this text; one that is there, or a link of that name, is left as it is."""
        with suppress(FileExistsError):
            replace_plain(name, text.encode(), _MODE, within=self.descriptor, keep=True)

    def replace(self, name: str, texts: Iterable[str]) -> None:
        """Put a file with this text there at once, instead of whatever bears the name."""
        replace_plain(name, (text.encode() for text in texts), _MODE, within=self.descriptor)

    def append(self, name: str, text: str) -> None:
        """Add to a file that is there, in one write."""
        descriptor, data = open_plain(name, os.O_WRONLY | os.O_APPEND, within=self.descriptor), text.encode()
        with open(descriptor, "ab", buffering=0) as file:
            if file.write(data) != len(data):
                raise OSError(errno.ENOSPC, "it was written in part", name)

    def stat(self, name: str) -> os.stat_result:
        """What is known of a file, or of a link of that name."""
        return os.stat(name, dir_fd=self.descriptor, follow_symlinks=False)


def _hashed(descriptor: int) -> tuple[str, int]:
    """The hash and number of the bytes of a file; raises OSError if there are too many."""
    digest, size = hashlib.sha256(), 0
    os.lseek(descriptor, 0, os.SEEK_SET)
    while block := os.read(descriptor, _BLOCK):
        digest.update(block)
        if (size := size + len(block)) > LARGEST:
            raise OSError(errno.EFBIG, f"it has more than {LARGEST:,} bytes")
    return digest.hexdigest(), size


def _require_within(descriptor: int, root: str) -> None:
    """Raise PermissionError for what lies outside of a project, whatever links led there."""
    path = os.readlink(f"/proc/self/fd/{descriptor}")
    if not Path(path).is_relative_to(root):
        raise PermissionError(errno.EPERM, "it points out of the project", path)
