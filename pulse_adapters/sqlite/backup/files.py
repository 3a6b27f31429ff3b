"""Copies of files: whole, for their owner alone, on disk and read back; and the directory that they are made in."""

import ctypes
import errno
import fcntl
import hashlib
import os
import shutil
import stat
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from pulse_adapters.sqlite.backup.manifest import DEEPEST, NAME, TREES, FileFact
from pulse_adapters.sqlite.synced_files import sync_directory
from pulse_adapters.workers.full_disk import free_room
from pulse_adapters.workers.plain_file import open_plain, replace_plain
from pulse_adapters.workers.untrusted_paths import FOLDER, folder_led_to, open_folder
from pulse_adapters.workers.users import expand_home
from pulse_core.model.errors import PulseError
from pulse_core.model.text import format_size

_PIECE = 1 << 20
_ANY = 2**63
_LONGEST = 2_048
"""Bytes of a folder's path in a backup: the path of the backup comes before it."""
PRIVATE = 0o700
_UNFINISHED = ".unfinished"
_JUST_MADE = 10.0
"""Seconds."""
_DATABASES = {"events.db", "vitals.db"}
_PARTS = {NAME, "objects", "config.toml", "shadow.jsonl", "shadow.jsonl.1", *TREES, *_DATABASES} | {
    f"{name}-journal" for name in _DATABASES
}
"""What can be in a backup, at its top."""
INODES = 100
"""Files and directories beyond those that are counted."""
_REFS_FIRST = ("HEAD", "packed-refs", "refs", "logs")
"""Of a git repository: its objects are there before anything points to them, so pointers are copied first."""


@contextmanager
def folder_of(root: Path, name: str, *, make: bool = False) -> Iterator[tuple[int, str]]:
    """The open folder that a path below `root` ends in, and the last name; no link below `root` is followed.

    make: folders that are not there are made. Raises OSError.
    """
    *folders, last = name.split("/")
    with ExitStack() as opened:
        here = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        opened.callback(os.close, here)
        for folder in folders:
            if make:
                with suppress(FileExistsError):
                    os.mkdir(folder, PRIVATE, dir_fd=here)
            here = opened.enter_context(open_folder(folder, here))
        yield here, last


def copy_file(original: int, target: str | Path, *, within: int | None = None, most: int = _ANY) -> FileFact:
    """Copy and close an open file; the copy is its owner's alone, executable if the original is.

    within: the open folder in which `target` is new; most: bytes. Raises OSError if there are more.
    """
    digest, size = hashlib.sha256(), 0
    with open(original, "rb") as opened:
        mode = 0o600 | (os.fstat(original).st_mode & stat.S_IXUSR)
        made = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600, dir_fd=within)
        with open(made, "wb") as copy:
            os.fchmod(made, mode)
            for piece in _pieces(opened, most):
                copy.write(piece)
                digest.update(piece)
                size += len(piece)
    return FileFact(size, digest.hexdigest(), mode)


def _pieces(file: BinaryIO, most: int) -> Iterator[bytes]:
    """All of a file. Raises OSError if that is more than so many bytes."""
    while piece := file.read(_PIECE):
        most -= len(piece)
        if most < 0:
            name = os.readlink(f"/proc/self/fd/{file.fileno()}")
            raise OSError(errno.EFBIG, os.strerror(errno.EFBIG), name)
        yield piece


def copy_tree(home: Path, target: Path, name: str, left_out: list[str]) -> Iterator[tuple[str, FileFact]]:
    """Copy a directory of `home` that others may be writing: its files and links, with their paths in a backup.

    It may be a link of this user's own or root's, as the settings' may; none in it is followed. What lies deeper than a
    backup can hold is not copied; such directories are added to `left_out`.
    """
    with suppress(FileNotFoundError), folder_led_to(Path(os.path.realpath(home), name)) as held:
        yield from _copy_folders(Path(f"/proc/self/fd/{held}"), target, name, left_out)


def _copy_folders(root: Path, target: Path, name: str, left_out: list[str]) -> Iterator[tuple[str, FileFact]]:
    folders = [name]
    while folders:
        folder = folders.pop()
        if folder.count("/") + 1 >= DEEPEST or len(os.fsencode(folder)) > _LONGEST:
            left_out.append(folder)
            continue
        inner = list[str]()
        try:
            with folder_of(root, f".{folder.removeprefix(name)}/.") as (there, _):
                (target / folder).mkdir(mode=PRIVATE)
                for entry in sorted(os.listdir(there), key=lambda entry: (entry not in _REFS_FIRST, entry)):
                    place = f"{folder}/{entry}"
                    # A lock outside of a repository is a file like others, as uv.lock.
                    if (entry.endswith(".lock") and ".git" in folder.split("/")) or entry == "__pycache__":
                        continue
                    with suppress(FileNotFoundError):  # whoever works there has just removed it
                        mode = os.stat(entry, dir_fd=there, follow_symlinks=False).st_mode
                        if stat.S_ISLNK(mode):
                            (target / place).symlink_to(link := os.readlink(entry, dir_fd=there))
                            yield place, FileFact(0, "", 0, link)
                        elif stat.S_ISDIR(mode):
                            inner.append(place)
                        elif stat.S_ISREG(mode):
                            yield place, copy_file(open_plain(entry, within=there), target / place)
        except FileNotFoundError:
            continue
        folders += reversed(inner)


def fact_of(root: Path, name: str, most: int = _ANY) -> FileFact:
    """What has this path below `root`, where no link is followed; read from the disk itself where it was synced.

    Raises OSError, also if it is neither a link nor a plain file, or one of more bytes than `most`.
    """
    with folder_of(root, name) as (folder, last):
        if stat.S_ISLNK(os.stat(last, dir_fd=folder, follow_symlinks=False).st_mode):
            return FileFact(0, "", 0, os.readlink(last, dir_fd=folder))
        with open(open_plain(last, within=folder), "rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            digest = hashlib.sha256()
            for piece in _pieces(file, most):
                digest.update(piece)
            found = os.fstat(file.fileno())
    return FileFact(found.st_size, digest.hexdigest(), stat.S_IMODE(found.st_mode))


def sync_all(directory: Path) -> None:
    """Have everything on the directory's file system on disk; raises OSError if that failed."""
    handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        if ctypes.CDLL(None, use_errno=True).syncfs(handle):
            code = ctypes.get_errno()
            if code != errno.ENOSYS:
                raise OSError(code, os.strerror(code), str(directory))
            os.sync()
    finally:
        os.close(handle)


def write_synced(path: Path, text: str) -> None:
    """A small file, whole and on disk before it has its name."""
    replace_plain(path, text.encode())
    sync_directory(path.parent)


def size_of(path: Path) -> int:
    """The bytes of a file or of everything in a directory; 0 if there is nothing, or nothing can be seen."""
    size, left = 0, [path]
    while left:
        with suppress(OSError):
            found = (one := left.pop()).lstat()
            if stat.S_ISDIR(found.st_mode):
                left += one.iterdir()
            else:
                size += found.st_size
    return size


def checked_destination(text: str, home: Path) -> Path:
    """The absolute path that is meant; raises PulseError if no backup can be made there."""
    path = Path(os.path.realpath(expand_home(text)))
    inside = os.path.realpath(home)
    if path == Path(inside) or Path(inside) in path.parents:
        raise PulseError(
            f"{path} is in the home itself and would be lost with it; give a directory elsewhere"
        )
    is_there = os.path.lexists(path)
    if is_there and not path.is_dir():
        raise PulseError(f"{path} is there and no directory; give a new name")
    if (path / NAME).exists():
        raise PulseError(f"{path} holds a backup already; give a new name, as {path}-2")
    if is_there and any(path.iterdir()):
        raise PulseError(f"{path} is not empty; give a new name in it, as {path / 'pulse'}")
    if path.is_mount():
        raise PulseError(f"{path} is where a disk is mounted; give a new name in it, as {path / 'pulse'}")
    if not path.parent.is_dir():
        raise PulseError(f"there is no directory {path.parent}; make it first, or give another place")
    if not os.access(path.parent, os.W_OK | os.X_OK):
        raise PulseError(f"{path.parent} is not writable for this user; give another place")
    return path


def demand_room(place: Path, needed: int, files: int, what: str) -> None:
    """Raise PulseError if the file system of this directory has not enough room (bytes, files)."""
    found = os.statvfs(place)
    free = free_room(found)
    if free < needed:
        raise PulseError(
            f"{what} may need {format_size(needed)}, and {place} has {format_size(free)}; make room there"
        )
    if found.f_files and found.f_favail < files + INODES:
        raise PulseError(
            f"{what} may need {files + INODES} files, and {place} can take {found.f_favail}; make room there"
        )


@contextmanager
def under_construction(path: Path) -> Iterator[Path]:
    """A directory beside `path` that gets its name at the end; what fails leaves nothing.

    It is reached by its open descriptor: where another user may change its name, nothing that he puts there is written or
    removed. What killed backups left in the folder is removed first. Raises PulseError if another backup is made there.
    """
    name = f".{path.name}{_UNFINISHED}"
    with folder_led_to(path.parent) as parent:
        for other in path.parent.glob(f".*{_UNFINISHED}"):
            if other.name != name:
                _remove_left(other.name, parent)
        with suppress(FileExistsError):
            os.mkdir(name, PRIVATE, dir_fd=parent)
        try:
            handle = os.open(name, FOLDER, dir_fd=parent)
        except OSError as error:
            place = path.with_name(name)
            raise PulseError(f"{place} is in the way of a backup, and no folder; remove it") from error
        try:
            _hold(handle, path.with_name(name))
            work = Path(f"/proc/self/fd/{handle}")
            try:
                os.fchmod(handle, PRIVATE)
                empty_directory(work)  # whatever has its name by now
                yield work
                _demand_same(name, parent, handle, path)
                os.rename(name, path.name, src_dir_fd=parent, dst_dir_fd=parent)
                _demand_same(path.name, parent, handle, path)
                os.fsync(parent)
            except BaseException:
                with suppress(OSError):
                    empty_directory(work)
                    if _is_same(name, parent, handle):
                        os.rmdir(name, dir_fd=parent)
                raise
        finally:
            os.close(handle)


def _hold(handle: int, place: Path) -> None:
    """Hold the open folder for a backup. Raises PulseError if it is another's."""
    if os.fstat(handle).st_uid != os.geteuid():
        raise PulseError(f"{place} is in the way of a backup, and another user's; remove it")
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise PulseError(
            f"another backup is being made in {place}; wait for it, or give another name"
        ) from None


def _is_same(name: str, parent: int, handle: int) -> bool:
    """Whether what has this name in the folder is what is open."""
    with suppress(FileNotFoundError):
        return os.path.samestat(os.stat(name, dir_fd=parent, follow_symlinks=False), os.fstat(handle))
    return False


def _demand_same(name: str, parent: int, handle: int, path: Path) -> None:
    if not _is_same(name, parent, handle):
        raise PulseError(f"somebody moved the backup away while it was made at {path}; nothing of it is kept")


def _remove_left(name: str, parent: int) -> None:
    """Remove what a killed backup left: nobody holds it, and nothing is in it but what a backup has."""
    with suppress(OSError):
        handle = os.open(name, FOLDER, dir_fd=parent)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            found = os.fstat(handle)
            is_old = time.time() - found.st_mtime > _JUST_MADE  # whoever has made it may not hold it yet
            if found.st_uid == os.geteuid() and is_old and set(os.listdir(handle)) <= _PARTS:
                empty_directory(Path(f"/proc/self/fd/{handle}"))
                os.rmdir(name, dir_fd=parent)
        finally:
            os.close(handle)


def empty_directory(directory: Path) -> None:
    """Remove all that is in a directory."""
    for entry in directory.iterdir():
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry)
        else:
            entry.unlink()
