"""Copies an untrusted tree of files for another user to read.

Whoever wrote the tree may change it meanwhile, so nothing is opened by a path of more than one name, no link is
followed, and a file that was only linked into it is not given away.
"""

import hashlib
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pulse_adapters.workers.plain_file import open_plain
from pulse_core.model.errors import PulseError

PASSED_OVER = frozenset({".git", "__pycache__", ".mypy_cache", ".pytest_cache", ".ruff_cache"})
MOST_BYTES, MOST_FILES, DEEPEST = 256 * 1024 * 1024, 20_000, 40
_LOOK = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class TreeRefused(PulseError):
    """A tree that is not laid out."""


@dataclass
class _Copy:
    """A copy under way. owner: whose the tree is; digest: of all names and contents, in order."""

    owner: int
    files: int = 0
    size: int = 0
    digest: Any = field(default_factory=hashlib.sha256)

    def count(self, part: bytes) -> None:
        """Take one more name or content into account."""
        self.digest.update(len(part).to_bytes(8, "big") + part)


def copy_tree(source: Path, target: Path) -> str:
    """Copy everything beneath `source` into `target`, a new folder, for all to read; a hash of what it is.

    Raises TreeRefused, OSError.
    """
    with _opened(source) as there:
        target.mkdir(mode=0o700)
        with _opened(target) as here:
            copy = _Copy(os.fstat(there).st_uid)
            _folder(copy, there, here, "")
    return str(copy.digest.hexdigest())


@contextmanager
def _opened(folder: str | Path, within: int | None = None) -> Iterator[int]:
    """A folder's descriptor, also by its name within another folder."""
    opened = os.open(folder, _LOOK, dir_fd=within)
    try:
        yield opened
    finally:
        os.close(opened)


def _folder(copy: _Copy, there: int, here: int, path: str) -> None:
    if path.count("/") > DEEPEST:
        raise TreeRefused(f"{path} is more than {DEEPEST} folders deep")
    for name in sorted(os.listdir(there)):
        if name not in PASSED_OVER:
            _entry(copy, there, here, name, f"{path}/{name}" if path else name)
    os.fchmod(here, 0o555)


def _entry(copy: _Copy, there: int, here: int, name: str, path: str) -> None:
    copy.files += 1
    if copy.files > MOST_FILES:
        raise TreeRefused(
            f"there are more than {MOST_FILES:,} files; move what is none of the engine's elsewhere"
        )
    mode = os.stat(name, dir_fd=there, follow_symlinks=False).st_mode
    copy.count(os.fsencode(path))
    if stat.S_ISLNK(mode):
        leads = os.readlink(name, dir_fd=there)
        os.symlink(leads, name, dir_fd=here)
        copy.count(os.fsencode(leads))
    elif stat.S_ISDIR(mode):
        with _opened(name, there) as below:
            os.mkdir(name, 0o700, dir_fd=here)
            with _opened(name, here) as new:
                _folder(copy, below, new, path)
    elif stat.S_ISREG(mode):
        _file(copy, there, here, name, path)


def _file(copy: _Copy, there: int, here: int, name: str, path: str) -> None:
    with open(open_plain(name, within=there), "rb") as file:
        known = os.fstat(file.fileno())
        if known.st_nlink > 1 and known.st_uid != copy.owner:
            raise TreeRefused(f"{path} is another user's file; it is not given to the engine's user")
        content = file.read(MOST_BYTES - copy.size + 1)
    copy.size += len(content)
    if copy.size > MOST_BYTES:
        raise TreeRefused(
            f"the files take more than {MOST_BYTES:,} bytes; move what is none of the engine's elsewhere"
        )
    copy.count(content)
    new = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600, dir_fd=here)
    with open(new, "wb") as written:
        written.write(content)
        os.fchmod(new, 0o555 if known.st_mode & stat.S_IXUSR else 0o444)
