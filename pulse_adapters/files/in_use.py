"""Finds files that processes have open: one pass over /proc, and a last check of each file before it is deleted."""

import errno
import fcntl
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import NamedTuple

from pulse_adapters.workers.process_access import as_its_user
from pulse_adapters.workers.process_memory import other_thread

OPEN = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
UNKNOWN = ""
GONE = " (deleted)"
_F_SETSIG = 10


class FilesInUse(NamedTuple):
    """Files that are open, mapped, or a working directory: (device, inode) and paths; device: `8:1`, or unknown."""

    inodes: frozenset[tuple[str, int]] = frozenset()
    paths: frozenset[str] = frozenset()

    def holds(self, device: str, inode: int, path: str) -> bool:
        """Whether this file is one of them, or may be, where an open file's device is unknown."""
        return (device, inode) in self.inodes or (UNKNOWN, inode) in self.inodes or path in self.paths


def find_files_in_use() -> FilesInUse:
    """The files that visible processes have open; no file itself is accessed, so none can block."""
    inodes, paths, mounts = set[tuple[str, int]](), set[str](), MountDevices()
    own = str(os.getpid())
    for pid in os.listdir("/proc"):
        if pid.isdecimal() and pid != own:
            with as_its_user(pid):
                found = [*_open_files(pid, mounts), *_mapped_files(pid)]
                if not found and (other := other_thread(int(pid))):
                    found = [*_open_files(other, mounts), *_mapped_files(other)]
            for device, inode, path in found:
                if not path.endswith(GONE):
                    inodes.add((device, inode))
                paths.add(path)
    return FilesInUse(frozenset(inodes), frozenset(paths))


class MountDevices:
    """The device of each mount by the mount's number, which is the same in all processes that have the mount."""

    def __init__(self) -> None:
        self._devices = self._read("self")
        self._asked: set[str] = set()

    def device(self, number: str, pid: str = "self") -> str:
        """The device as `8:1`; for a mount that only another process has, from that one's mount table."""
        if number not in self._devices and pid not in self._asked:
            self._asked.add(pid)
            self._devices |= self._read(pid)
        return self._devices.get(number, UNKNOWN)

    def _read(self, pid: str) -> dict[str, str]:
        with suppress(OSError), open(f"/proc/{pid}/mountinfo", errors="surrogateescape") as table:
            return {field[0]: field[2] for field in map(str.split, table)}
        return {}


def _open_files(pid: str, mounts: MountDevices) -> Iterator[tuple[str, int, str]]:
    with suppress(OSError):
        for fd in os.listdir(f"/proc/{pid}/fd"):
            with suppress(OSError):
                path = os.readlink(f"/proc/{pid}/fd/{fd}")
                if path.startswith("/"):
                    yield *_of(pid, fd, mounts), path
    for name in ("cwd", "root", "exe"):
        with suppress(OSError):
            yield UNKNOWN, 0, os.readlink(f"/proc/{pid}/{name}")


def _of(pid: str, fd: str, mounts: MountDevices) -> tuple[str, int]:
    """Device and inode number of an open file; kernels before 5.14 give the inode only by stat."""
    with open(f"/proc/{pid}/fdinfo/{fd}") as info:
        said = dict(line.split(":", 1) for line in info if line.startswith(("mnt_id:", "ino:")))
    device = mounts.device(said["mnt_id"].strip(), pid) if "mnt_id" in said else UNKNOWN
    return device, int(said["ino"]) if "ino" in said else os.stat(f"/proc/{pid}/fd/{fd}").st_ino


def _mapped_files(pid: str) -> Iterator[tuple[str, int, str]]:
    with suppress(OSError), open(f"/proc/{pid}/maps", errors="surrogateescape") as maps:
        for line in maps:
            field = line.rstrip("\n").split(maxsplit=5)
            if len(field) == 6 and field[4] != "0":
                major, minor = field[3].split(":")
                yield f"{int(major, 16)}:{int(minor, 16)}", int(field[4]), field[5]


class FileTaken(Exception):
    """A process has the file open, or it is another file by now."""


@contextmanager
def exclusive_access(name: str, parent: int, inode: int) -> Iterator[None]:
    """Inside, no other process has this file open, as far as the kernel can promise that; raises FileTaken.

    The kernel grants a write lease only if no other process has it open. Files that may not be opened, or without
    leases on their file system, have only the pass over /proc.
    """
    try:
        file = os.open(name, OPEN, dir_fd=parent)
    except PermissionError:
        yield
        return
    except OSError as error:
        raise FileTaken from error
    try:
        if os.fstat(file).st_ino != inode:
            raise FileTaken
        try:
            fcntl.fcntl(file, _F_SETSIG, signal.SIGURG)  # who waits for us makes a noise that nobody hears
            fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_WRLCK)
        except OSError as error:
            if error.errno == errno.EAGAIN:  # others may not have a lease, or their file system has none
                raise FileTaken from error
        yield
    finally:
        os.close(file)
