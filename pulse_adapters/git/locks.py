"""One at a time: a lock for Pulse's own processes, and the locks that a killed git has left lying about."""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from pulse_core.model.errors import PulseError

WAIT_S = 20.0
LEFT_S = 2.0
"""How old a lock must be before it may count as left behind; a git that lives holds one for milliseconds."""
_PAUSE_S = 0.02


@contextmanager
def alone(home: Path, wait: float = WAIT_S) -> Iterator[None]:
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
        for lock in found:
            with suppress(FileNotFoundError):
                if time.time() - lock.stat().st_mtime > LEFT_S and not git_is_at_work(home):
                    lock.unlink()
        if time.monotonic() > until:
            raise PulseError(
                f"another git is at work: {found[0]} is there; end it, or remove that file if none is"
            )
        time.sleep(_PAUSE_S)


def _locks(folder: Path) -> Iterator[Path]:
    yield from folder.glob("*.lock")
    yield from folder.glob("worktrees/*/*.lock")
    yield from folder.glob("refs/**/*.lock")


def git_is_at_work(home: Path) -> bool:
    """Whether a git runs in the home, as far as this user may know; one whose place is hidden counts too."""
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if not (process / "comm").read_text(errors="replace").startswith("git"):
                continue
            if (process / "cwd").readlink().is_relative_to(home.resolve()):
                return True
        except PermissionError:
            return True
        except OSError:
            continue  # it has ended meanwhile
    return False
