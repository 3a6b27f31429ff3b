"""Whether a user can read what its code needs, told by the modes of files and of the folders above them."""

import os
import stat
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from pulse_adapters.engine_user.account import Account

READABLE = "install Python and Pulse where it can, as in /opt"
"""What helps a user that can't read them."""
_PACKAGES = ("pulse_core", "pulse_adapters", "pydantic", "pydantic_core")


def first_unreadable(account: Account, paths: Iterable[str] = ()) -> str:
    """The first file or folder that keeps the user from Python, from Pulse or from these; nothing if none does."""
    steps = (step for path in (*_needed(), *paths) for step in _steps(path))
    return next((step for step in steps if not _is_open(account, step)), "")


def _needed() -> Iterator[str]:
    """What stands for the whole of each: the interpreter, its library, and each package."""
    yield sys.executable
    yield str(os.__file__)
    for name in _PACKAGES:
        if module := sys.modules.get(name):
            yield str(module.__file__)


def _steps(path: str) -> Iterator[str]:
    """Each folder on the way, and the file itself, without links."""
    for place in (Path(os.path.abspath(path)), Path(path).resolve()):
        yield from (str(one) for one in (*reversed(place.parents), place) if not one.is_symlink())


def _is_open(account: Account, path: str) -> bool:
    """Whether it may search this folder, or read this file. An access list that says otherwise is not looked at."""
    try:
        known = os.stat(path)
    except OSError:
        return False
    needed = stat.S_IXOTH if stat.S_ISDIR(known.st_mode) else stat.S_IROTH
    if known.st_uid == account.uid:
        needed <<= 6
    elif known.st_gid == account.gid:
        needed <<= 3
    return bool(known.st_mode & needed)
