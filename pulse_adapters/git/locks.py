"""Locks the repository among Pulse's own processes, and removes stale locks of killed git processes."""

import os
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from pulse_adapters.workers.plain_file import locked
from pulse_core.model.errors import PulseError

if TYPE_CHECKING:
    from psutil import Process

WAIT_S = 20.0
LEFT_S = 2.0
"""How old a lock must be before it may count as left behind: nearly every git that lives holds one for milliseconds,
and whoever holds one for longer is looked for among the processes."""
_PAUSE_S, _LONG_PAUSE_S = 0.02, 0.2
"""Between two looks; all processes are looked through while somebody is known to hold a lock."""

_LOCKS = ("*.lock", "worktrees/*/*.lock", "refs/**/*.lock")


@contextmanager
def repository_lock(home: Path, wait: float = WAIT_S) -> Iterator[None]:
    """Inside, no other process of Pulse changes the repository, and no killed git's lock is in the way."""
    words = f"another upulse is changing the engine of {home}; wait for it, then try again"
    until = time.monotonic() + wait
    with _folder_lock(home, wait, words, f"{home} can't be used as a home"):
        _clear(home, until)
        yield


@contextmanager
def proposal_lock(home: Path) -> Iterator[None]:
    """Inside, no other proposal is written into staging or tried; whatever else changes it may do so."""
    staging = home / "staging"
    words = f"another proposal is being tried in {staging}; wait for it, then try again"
    with _folder_lock(staging, WAIT_S, words, f"{staging} can't be opened"):
        yield


@contextmanager
def _folder_lock(folder: Path, wait: float, taken: str, unusable: str) -> Iterator[None]:
    try:
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise PulseError(f"{unusable}: {error.strerror}") from error
    with ExitStack() as stack:
        stack.callback(os.close, handle)
        try:
            stack.enter_context(locked(handle, wait, _PAUSE_S))
        except BlockingIOError:
            raise PulseError(taken) from None
        yield


def _clear(home: Path, until: float) -> None:
    """Wait for git's own locks, and take away those that nobody holds any more."""
    folder = home / "engine" / ".git"
    while found := [lock for pattern in _LOCKS for lock in folder.glob(pattern)]:
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
        if abs(time.time() - before.st_mtime) <= LEFT_S:  # the clock may have been set back since
            return ""
        if who := process_holding(home, lock):
            return who
        now = lock.stat()
        if os.path.samestat(before, now) and before.st_mtime_ns == now.st_mtime_ns:  # no other one since
            lock.unlink()
    except FileNotFoundError:
        pass
    return ""


def process_holding(home: Path, lock: Path) -> str:
    """The process that holds a lock, as far as this user may know; empty if none does.

    A git that runs in the home or was told of it may (one that waits for an editor keeps no file open), and so may
    whoever has the lock open. A git whose place is hidden counts too.
    """
    import psutil  # slow to import, and a lock is nearly never there

    here, file = Path(os.path.realpath(home)), os.path.realpath(lock)
    for process in psutil.process_iter():
        is_git = False
        try:
            is_git = process.name().startswith("git")
            if (is_git and _is_told_of(process, here)) or _has_open(process.pid, file):
                return f"process {process.pid}"
        except (psutil.AccessDenied, PermissionError):
            if is_git:
                return f"process {process.pid}"
        except (psutil.Error, FileNotFoundError, ProcessLookupError):
            continue  # it has ended meanwhile
    return ""


def _has_open(pid: int, file: str) -> bool:
    """Whether a process has this file open. Reads the links only: to look at what they lead to may take for ever."""
    folder = f"/proc/{pid}/fd"
    for handle in os.listdir(folder):
        try:
            if os.readlink(f"{folder}/{handle}") == file:
                return True
        except PermissionError:
            raise
        except OSError:
            continue  # it was closed meanwhile, or its path is too long to be told
    return False


def _is_told_of(git: "Process", home: Path) -> bool:
    if Path(git.cwd()).is_relative_to(home):
        return True
    sent = [value for name, value in git.environ().items() if name.startswith("GIT_")]
    return any(str(home) in word for word in (*sent, *git.cmdline()))
