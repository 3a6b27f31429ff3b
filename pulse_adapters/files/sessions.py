"""Reads sessions from the disk: all entries of one, without following a link."""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from pulse_adapters.files.in_use import FilesInUse, FileTaken, MountDevices, exclusive_access
from pulse_adapters.files.safe_directory import LIST, STEP, SafeDirectory, mount_of
from pulse_adapters.files.worker import Deadline, describe_os_error

DEEPEST, MOST = 100, 200_000


class KeptReason(Exception):
    """Why a session is left where it is."""


class SessionEntry(NamedTuple):
    """A directory, file or link of a session: its path below the root, its status, and a link's target."""

    path: str
    mode: int
    inode: int
    size: int
    mtime_ns: int
    ctime_ns: int
    uid: int
    gid: int
    blocks: int
    target: str = ""

    def is_still(self, said: os.stat_result) -> bool:
        """Whether it is unchanged; a change time (ctime) can't be set back."""
        before = (self.mode, self.inode, self.size, self.mtime_ns, self.ctime_ns)
        return before == (said.st_mode, said.st_ino, said.st_size, said.st_mtime_ns, said.st_ctime_ns)


class Session(NamedTuple):
    """A session: an entry of the root, with all that is in it, outer before inner."""

    name: str
    pieces: tuple[SessionEntry, ...]

    @property
    def size(self) -> int:
        """Bytes to be archived."""
        return sum(piece.size for piece in self.pieces if stat.S_ISREG(piece.mode))

    @property
    def blocks(self) -> int:
        """Bytes occupied on the disk."""
        return sum(piece.blocks for piece in self.pieces) * 512


class SessionReader:
    """Reads the sessions of one root; those that were modified after `before_ns`, or are open, are kept."""

    def __init__(self, root: SafeDirectory, before_ns: int, used: FilesInUse, deadline: Deadline) -> None:
        self.root, self.before_ns, self.used, self.deadline = root, before_ns, used, deadline
        self._mount = mount_of(root.fd)
        self._device = MountDevices().device(self._mount)

    def session(self, name: str) -> Session:
        """The session of this name; raises KeptReason if it must stay, FileNotFoundError if it is gone."""
        pieces: list[SessionEntry] = []
        try:
            if not _may_remove(self.root.fd, os.lstat(name, dir_fd=self.root.fd)):
                raise KeptReason("not permitted")
            self._look(name, self.root.fd, name, 0, pieces)
        except FileNotFoundError:
            raise
        except OSError as error:
            raise KeptReason(describe_os_error(error)) from error
        if stat.S_ISLNK(pieces[0].mode):
            raise KeptReason("a link")
        return Session(name, tuple(pieces))

    def _look(self, name: str, parent: int, path: str, depth: int, pieces: list[SessionEntry]) -> None:
        self.deadline.check()
        said = os.lstat(name, dir_fd=parent)
        if max(said.st_mtime_ns, said.st_ctime_ns) > self.before_ns:
            raise KeptReason("touched")
        if self.used.holds(self._device, said.st_ino, os.path.join(self.root.path, path)):
            raise KeptReason("open")
        if depth > DEEPEST or len(pieces) >= MOST:
            raise KeptReason("too large")
        target = os.readlink(name, dir_fd=parent) if stat.S_ISLNK(said.st_mode) else ""
        pieces.append(SessionEntry(
            path, said.st_mode, said.st_ino, said.st_size, said.st_mtime_ns, said.st_ctime_ns,
            said.st_uid, said.st_gid, said.st_blocks, target,
        ))  # fmt: skip
        if stat.S_ISDIR(said.st_mode):
            self._look_into(name, parent, path, depth, pieces)
        elif not (stat.S_ISREG(said.st_mode) or target):
            raise KeptReason("holds what is no plain file")
        elif said.st_nlink > 1:
            raise KeptReason("has a file with another name")

    def _look_into(self, name: str, parent: int, path: str, depth: int, pieces: list[SessionEntry]) -> None:
        fd = os.open(name, LIST, dir_fd=parent)
        try:
            if mount_of(fd) != self._mount or os.fstat(fd).st_dev != os.fstat(self.root.fd).st_dev:
                raise KeptReason("holds another file system")
            with os.scandir(fd) as entries:
                names = sorted(entry.name for entry in entries)
            for inner in names:
                if not _may_remove(fd, os.lstat(inner, dir_fd=fd)):
                    raise KeptReason("not permitted")
                self._look(inner, fd, os.path.join(path, inner), depth + 1, pieces)
        finally:
            os.close(fd)


def _may_remove(parent: int, said: os.stat_result) -> bool:
    """Whether this user may delete it: otherwise it would be archived again and again."""
    if not os.access(f"/proc/self/fd/{parent}", os.W_OK | os.X_OK, effective_ids=True):
        return False
    holder, own = os.fstat(parent), os.geteuid()
    return not holder.st_mode & stat.S_ISVTX or own in (0, said.st_uid, holder.st_uid)


@contextmanager
def open_parent(root: SafeDirectory, path: str) -> Iterator[tuple[int, str]]:
    """Open the directory that holds an entry, component by component from the root; yields it and the entry's name."""
    *steps, name = path.split("/")
    here = os.dup(root.fd)
    try:
        for step in steps:
            there = os.open(step, STEP, dir_fd=here)
            os.close(here)
            here = there
        yield here, name
    finally:
        os.close(here)


def delete_session(root: SafeDirectory, session: Session) -> bool:
    """Delete the unchanged entries, inner before outer, unless a process has them open; returns whether all were deleted."""
    try:
        for piece in session.pieces:
            if stat.S_ISREG(piece.mode):
                with (
                    open_parent(root, piece.path) as (parent, name),
                    exclusive_access(name, parent, piece.inode),
                ):
                    pass
        for piece in reversed(session.pieces):
            _remove(root, piece)
    except (OSError, FileTaken):
        return False
    return True


def _remove(root: SafeDirectory, piece: SessionEntry) -> None:
    with open_parent(root, piece.path) as (parent, name):
        if not root.holds(parent):
            raise FileTaken
        if stat.S_ISDIR(piece.mode):
            os.rmdir(name, dir_fd=parent)
            return
        if not piece.is_still(os.lstat(name, dir_fd=parent)):
            raise FileTaken
        if stat.S_ISLNK(piece.mode):
            os.unlink(name, dir_fd=parent)
            return
        with exclusive_access(name, parent, piece.inode):
            os.unlink(name, dir_fd=parent)
