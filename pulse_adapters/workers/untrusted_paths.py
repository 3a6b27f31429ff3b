"""Deletes and changes what lies where other users may change every name: no link is followed, whoever swaps one in.

A path is looked up name by name, each in a folder that is open. What another user owns is deleted by a child that has
become that user, and that has a deadline; so root can do nothing there that this user could not do itself.
"""

import errno
import os
import stat
import subprocess
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path

from pulse_adapters.workers.drop_privileges import become_unwaited
from pulse_adapters.workers.followed_path import led_to
from pulse_core.model.errors import PulseError

FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
PATIENCE = 10.0
"""Seconds after which what is left of a folder is left: somebody fills it as quickly as it is emptied."""
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


@contextmanager
def open_folder(folder: str | Path, within: int | None = None) -> Iterator[int]:
    """A folder's descriptor, also by its name within another folder; no link for one. Raises OSError."""
    opened = os.open(folder, FOLDER, dir_fd=within)
    try:
        yield opened
    finally:
        os.close(opened)


@contextmanager
def folder_led_to(path: Path) -> Iterator[int]:
    """A folder's descriptor, reached by no link but root's and this user's own. Raises OSError."""
    with led_to(str(path.absolute())) as (there, of_others):
        for name in of_others.values():
            raise PermissionError(errno.EACCES, f"{name} is a link of another user's", name)
        with open_folder(".", there) as folder:
            yield folder


def remove_tree(path: str | Path, within: int | None = None, patience: float = PATIENCE) -> bool:
    """Delete a folder with all that is in it, or a file or link of that name; whether nothing is left. For threads.

    within: the open folder that it is in, which nobody but us may change. Parts of other users are deleted by those.
    """
    with suppress(OSError):
        if not (gone := _remove(path, within)):
            with open_folder(path, within) as held:
                empty_folder(held, patience)
            gone = _remove(path, within)
        return gone
    return False


def empty_folder(held: int, patience: float = PATIENCE) -> None:
    """Delete all that is in an open folder, as far as that can be done. `find` opens each folder in the one above it."""
    owner, until = os.fstat(held), time.monotonic() + patience
    if owner.st_uid == os.geteuid() == 0:
        for name in _of_others(os.listdir(held), held):
            remove_tree(name, held, until - time.monotonic())
    ids = owner.st_uid, owner.st_gid
    chosen: tuple[str, ...] = ("-user", "0")
    if owner.st_uid:  # whom the modes of its own folders can hold up, and who may delete all that it can
        run_as_user(("chmod", "-R", "u+rwx", "."), ids, held, until - time.monotonic())
        chosen = ()
    delete = ("find", ".", "-xdev", "-mindepth", "1", *chosen, "-delete")
    run_as_user(delete, ids, held, until - time.monotonic())


def hand_over(path: Path, home: Path) -> bool:
    """Give a file or folder of root's, or any in a home of root's, to the home's owner; whether that was done."""
    if os.geteuid():
        return False
    with suppress(OSError), _reached(path, home) as (there, owner):
        found = os.fstat(there)
        is_one = stat.S_ISDIR(found.st_mode) or (stat.S_ISREG(found.st_mode) and found.st_nlink == 1)
        if is_one and 0 in (found.st_uid, owner.st_uid):
            os.fchown(there, owner.st_uid, owner.st_gid)
            return True
    return False


def make_private(path: Path, home: Path) -> None:
    """Close a home, or a folder in it, to all but the home's owner. Raises OSError; PulseError if it is another's.

    Nothing is changed for root where others may have led the way to this folder.
    """
    with _reached(path, home) as (there, owner):
        if os.geteuid() == 0:
            _demand_way_of(owner.st_uid, home)
        if os.fstat(there).st_uid != owner.st_uid:
            raise PulseError(f"{path} is not of the user whose home {home} is")
        os.fchmod(there, 0o700)


@contextmanager
def _reached(path: Path, home: Path) -> Iterator[tuple[int, os.stat_result]]:
    """What lies at a path in a home, open, and the home's own data."""
    with ExitStack() as opened:
        here = opened.enter_context(open_folder(Path(os.path.realpath(home))))
        owner = os.fstat(here)
        for name in path.relative_to(home).parts:
            here = os.open(name, _FILE, dir_fd=here)
            opened.callback(os.close, here)
        yield here, owner


def _demand_way_of(owner: int, home: Path) -> None:
    """Raise PulseError if others than this user and root may have something else lie where the home is."""
    for place in (Path(os.path.abspath(home)), Path(os.path.realpath(home))):
        for folder in place.parents:
            found = folder.stat()
            may_write = found.st_mode & 0o022 and not found.st_mode & stat.S_ISVTX
            if may_write or found.st_uid not in (0, owner):
                raise PulseError(
                    f"others can change {folder}, and so what lies at {home}: it is left as it is"
                )


def run_as_user(argv: Sequence[str], ids: tuple[int, int], folder: int | None, patience: float) -> None:
    """Run a program as this user and group in an open folder, so many seconds at most; how it ends is not told.

    Raises PulseError if we are neither that user nor root.
    """
    if os.geteuid() not in (0, ids[0]):
        raise PulseError("only root can act as another user")
    user, group = ids if os.geteuid() != ids[0] else (None, None)
    with suppress(OSError, subprocess.SubprocessError):
        subprocess.run(
            argv, cwd="/" if folder is None else f"/proc/self/fd/{folder}", group=group,
            extra_groups=None if user is None else (), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, timeout=max(0.1, patience), check=False,
            preexec_fn=None if user is None else partial(become_unwaited, user),
        )  # fmt: skip


def _of_others(names: Iterable[str], held: int) -> Iterator[str]:
    """The folders among these that are not root's."""
    for name in names:
        with suppress(FileNotFoundError):
            found = os.stat(name, dir_fd=held, follow_symlinks=False)
            if found.st_uid and stat.S_ISDIR(found.st_mode):
                yield name


def _remove(path: str | Path, within: int | None) -> bool:
    """Delete an empty folder, or what else has that name; whether it is gone. Raises OSError but for a full folder."""
    try:
        os.rmdir(path, dir_fd=within)
    except FileNotFoundError:
        return True
    except NotADirectoryError:
        os.unlink(path, dir_fd=within)
    except OSError as error:
        if error.errno != errno.ENOTEMPTY:
            raise
        return False
    return True
