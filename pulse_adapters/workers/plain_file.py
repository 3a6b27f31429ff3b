"""Opens plain files whose names others may have given to a link, a pipe or a device meanwhile: none is waited for."""

import errno
import os
import stat

Path = str | os.PathLike[str]


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
    file = os.open(path, flags, mode, dir_fd=within)
    if not stat.S_ISREG(os.fstat(file).st_mode):
        os.close(file)
        raise NotPlain(errno.EINVAL, "it is no plain file", os.fspath(path))
    return file


def read_plain(path: Path, most: int, *, within: int | None = None, follow: bool = False) -> bytes:
    """What a plain file of at most so many bytes holds. Raises OSError, as `open_plain`."""
    with open(open_plain(path, within=within, follow=follow), "rb") as file:
        content = file.read(most + 1)
    if len(content) > most:
        raise OSError(errno.EFBIG, f"it has more than {most:,} bytes", os.fspath(path))
    return content
