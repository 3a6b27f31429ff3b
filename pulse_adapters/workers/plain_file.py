"""Opens plain files whose names others may have given to a link, a pipe or a device meanwhile: none is waited for."""

import errno
import fcntl
import os
import re
import secrets
import stat
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import BinaryIO

Path = str | os.PathLike[str]
_CHUNK = 1 << 20
UNFINISHED = f".{'[0-9a-f]' * 16}.unfinished"
"""What the names look like, as a pattern of shells, that files have which `replacing` still writes."""


class NotPlain(OSError):
    """Something else has the name of a file."""


def open_plain(
    path: Path,
    flags: int = os.O_RDONLY,
    mode: int = 0o600,
    *,
    within: int | None = None,
    follow: bool = False,
) -> int:
    """A descriptor of a plain file. Raises OSError: NotPlain for what is none; for a link, too, unless those are followed.

    within: the open folder in which it has this name.
    """
    flags |= os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC | (0 if follow else os.O_NOFOLLOW)
    try:  # who reads would else write the time of that, and wait for a disk that hangs
        file = os.open(path, flags | os.O_NOATIME, mode, dir_fd=within)
    except PermissionError:  # only its owner and root may
        file = os.open(path, flags, mode, dir_fd=within)
    try:
        if not stat.S_ISREG(os.fstat(file).st_mode):
            raise NotPlain(errno.EINVAL, "it is no plain file", os.fspath(path))
    except OSError:  # also of a file system that fails from now on
        os.close(file)
        raise
    return file


@contextmanager
def _named_in_errors(path: Path) -> Iterator[None]:
    """Have an OSError say which file it is about: the kernel names none of a read, write or sync that fails."""
    try:
        yield
    except OSError as error:
        if error.filename is None:
            error.filename = os.fspath(path)
        raise


def read_plain(path: Path, most: int, *, within: int | None = None, follow: bool = False) -> bytes:
    """What a plain file of at most so many bytes holds. Raises OSError, as `open_plain`."""
    with open(open_plain(path, within=within, follow=follow), "rb") as file, _named_in_errors(path):
        content = file.read(most + 1)
    if len(content) > most:
        raise OSError(errno.EFBIG, f"it has more than {most:,} bytes", os.fspath(path))
    return content


def end_of_plain(path: Path, most: int, *, follow: bool = False) -> str:
    """The last bytes of a plain file, at most so many, as text. Raises OSError, as `open_plain`."""
    with open(open_plain(path, follow=follow), "rb") as file, _named_in_errors(path):
        file.seek(max(0, file.seek(0, os.SEEK_END) - most))
        return file.read(most).decode("utf-8", "replace")


def has_match(file: BinaryIO, pattern: re.Pattern[bytes], longest: int) -> bool:
    """Whether the rest of an open file matches. longest: bytes of the longest match. Raises OSError."""
    end = b""
    while chunk := file.read(_CHUNK):
        if pattern.search(end + chunk):
            return True
        end = chunk[-longest:]
    return False


def cut_middle(file: BinaryIO, most: int, end: int) -> None:
    """Cut out of the middle of an open file what is more than `most` bytes, but keep as many at its end: in place, for the
    disk may be full."""
    file.seek(-end, os.SEEK_END)
    kept = file.read(end)
    file.seek(most - end)
    file.write(kept)
    file.truncate(most)


@contextmanager
def replacing(
    path: Path,
    mode: int = 0o600,
    *,
    within: int | None = None,
    keep: bool = False,
    synced: bool = True,
) -> Iterator[BinaryIO]:
    """A new file to write, which has this name at the end. Raises OSError, and then leaves what was there.

    Until then it has none, so that nothing is left where this process is killed. Where the file system has no such files,
    and for the moment in which another one is replaced, its name is one that nobody knew before, so that no link or pipe
    waits there. within: the open folder in which it has its name; keep: raise FileExistsError where something has the name
    already; synced: it is on disk first.
    """
    aside = os.path.join(os.path.dirname(path), f".{secrets.token_hex(8)}.unfinished")
    named = False
    try:
        if (file := _open_unnamed(path, mode, within)) is None:
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
            file, named = os.open(aside, flags, mode, dir_fd=within), True
        with _named_in_errors(path), open(file, "wb") as opened:
            yield opened
            opened.flush()
            os.fchmod(file, mode)
            if synced:
                os.fsync(file)
            if not named:
                try:
                    _give_name(file, path, within)
                    return
                except FileExistsError:
                    if keep:
                        raise
                _give_name(file, aside, within)
                named = True
        if keep:
            os.link(aside, path, src_dir_fd=within, dst_dir_fd=within)
            os.unlink(aside, dir_fd=within)
        else:
            os.replace(aside, path, src_dir_fd=within, dst_dir_fd=within)
    except BaseException:
        if named:
            os.unlink(aside, dir_fd=within)
        raise


def _open_unnamed(path: Path, mode: int, within: int | None) -> int | None:
    """A file without a name on the file system of this path; None where that has none."""
    flags = os.O_WRONLY | os.O_TMPFILE | os.O_CLOEXEC
    try:
        return os.open(os.path.dirname(path) or ".", flags, mode, dir_fd=within)
    except OSError as error:
        if error.errno in (errno.EOPNOTSUPP, errno.EISDIR, errno.EINVAL):
            return None
        raise OSError(error.errno, error.strerror, os.fspath(path)) from None  # not of its folder


def _give_name(file: int, path: Path, within: int | None) -> None:
    try:  # with any source folder, which an absolute path needs not, Python follows the link
        os.link(f"/proc/self/fd/{file}", path, src_dir_fd=file, dst_dir_fd=within)
    except OSError as error:
        raise OSError(error.errno, error.strerror, os.fspath(path)) from None


def replace_plain(
    path: Path,
    data: bytes | Iterable[bytes],
    mode: int = 0o600,
    *,
    within: int | None = None,
    keep: bool = False,
    synced: bool = True,
) -> None:
    """Put a file there at once, as `replacing` does."""
    with replacing(path, mode, within=within, keep=keep, synced=synced) as file:
        file.writelines((data,) if isinstance(data, bytes) else data)


@contextmanager
def locked(descriptor: int, wait: float, step: float) -> Iterator[None]:
    """Hold the lock of an open file or folder. Raises BlockingIOError if another has it for longer.

    wait, step: seconds to wait, and between two tries.
    """
    until = time.monotonic() + wait
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            break
        except BlockingIOError:
            if time.monotonic() >= until:
                raise
        time.sleep(step)
    try:
        yield
    finally:
        fcntl.flock(descriptor, fcntl.LOCK_UN)
