"""Locks the repository among Pulse's own processes, and removes stale locks of killed git processes."""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from pulse_core.model.errors import PulseError

WAIT_S = 20.0
LEFT_S = 2.0
"""How old a lock must be before it may count as left behind: nearly every git that lives holds one for milliseconds,
and whoever holds one for longer is looked for among the processes."""
_PAUSE_S, _LONG_PAUSE_S = 0.02, 0.2
"""Between two looks; all processes are looked through while somebody is known to hold a lock."""


@contextmanager
def repository_lock(home: Path, wait: float = WAIT_S) -> Iterator[None]:
    """Inside, no other process of Pulse changes the repository, and no killed git's lock is in the way."""
    until = time.monotonic() + wait
    handle = _opened(home)
    try:
        while not _taken(handle):
            if time.monotonic() > until:
                raise PulseError(
                    f"another upulse is changing the engine of {home}; wait for it, then try again"
                )
            time.sleep(_PAUSE_S)
        _clear(home, until)
        yield
    finally:
        os.close(handle)


def _opened(home: Path) -> int:
    try:
        return os.open(home, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise PulseError(f"{home} can't be used as a home: {error.strerror}") from error


def _taken(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _clear(home: Path, until: float) -> None:
    """Wait for git's own locks, and take away those that nobody holds any more."""
    while found := list(_locks(home / "engine" / ".git")):
        who = [_held(home, lock) for lock in found]
        if time.monotonic() > until:
            raise PulseError(
                f"another git is at work: {found[0]} is there{next((f', held by {one}' for one in who if one), '')};"
                " end it, or remove that file if none is"
            )
        time.sleep(_LONG_PAUSE_S if any(who) else _PAUSE_S)


def _held(home: Path, lock: Path) -> str:
    """Who holds it, as far as that can be known; one that is old and nobody's is gone then."""
    try:
        before = lock.stat()
        if time.time() - before.st_mtime <= LEFT_S:
            return ""
        if who := process_holding(home, lock):
            return who
        if _same(before, lock.stat()):
            lock.unlink()
    except FileNotFoundError:
        pass
    return ""


def _same(before: os.stat_result, now: os.stat_result) -> bool:
    """Whether it is the lock that was judged, and not another's who came since."""
    return (before.st_ino, before.st_mtime_ns) == (now.st_ino, now.st_mtime_ns)


def _locks(folder: Path) -> Iterator[Path]:
    yield from folder.glob("*.lock")
    yield from folder.glob("worktrees/*/*.lock")
    yield from folder.glob("refs/**/*.lock")


def process_holding(home: Path, lock: Path) -> str:
    """The process that holds a lock, as far as this user may know; empty if none does.

    A git that runs in the home or was told of it may (one that waits for an editor keeps no file open), and so may
    whoever has the lock open. A git whose place is hidden counts too.
    """
    here = home.resolve()
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if _is_git_in(process, here) or _has_open(process, lock.resolve()):
                return f"process {process.name}"
        except PermissionError:
            if _is_git(process):
                return f"process {process.name}"
        except OSError:
            continue  # it has ended meanwhile
    return ""


def _is_git(process: Path) -> bool:
    try:
        return (process / "comm").read_text(errors="replace").startswith("git")
    except OSError:
        return False


def _is_git_in(process: Path, home: Path) -> bool:
    if not _is_git(process):
        return False
    if (process / "cwd").readlink().is_relative_to(home):
        return True
    sent = [word for word in (process / "environ").read_bytes().split(b"\0") if word.startswith(b"GIT_")]
    return any(os.fsencode(home) in word for word in (*sent, (process / "cmdline").read_bytes()))


def _has_open(process: Path, lock: Path) -> bool:
    return any(_leads_to(handle) == lock for handle in (process / "fd").iterdir())


def _leads_to(handle: Path) -> Path | None:
    with suppress(FileNotFoundError):  # it was closed meanwhile
        return handle.readlink()
    return None
