"""The home's lock: whoever holds it is the one writer.

An open-file-description lock: like flock it dies with its last descriptor, so with its process; unlike flock
anyone may ask who holds it without taking it for a moment. What it says is written to a new file that is locked
before it gets the name, so nobody reads half of it. Where no file can
be made it is written over what is there.

Who holds `run/lock` has such a lock, shared, on the home's folder, too: so it is known who that is where `run/` was deleted.
Whoever changes the engine has a flock on that folder, which is another matter.

On a read-only file system a daemon may hold the file that is there: by a shared lock, which keeps out whoever wants it
alone, and by flock, which keeps out the next that can't write either. What it says is of an earlier holder then. So it is
on a full one that writes to another place what changes (btrfs): there is no room for a file that is written over either. And
so it is on a disk that answers what is written with errors.
"""

import errno
import fcntl
import json
import os
import stat
import struct
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path

from pulse_adapters.workers.boot_id import boot_id
from pulse_adapters.workers.home_folder import HomeFolder
from pulse_adapters.workers.plain_file import open_plain
from pulse_adapters.workers.read_only import NO_NEW_FILE
from pulse_core.home import HomeLayout
from pulse_core.model.errors import HomeBusy, NoHome, PulseError
from pulse_core.model.home_status import LockHolder

LOCK = "lock"
"""The name of the file; other things of a home have locks of their own beside it."""
PATIENCE = 2.0
"""Seconds in which whoever holds the home and is no daemon, as a command that records something, is left to end."""

_WHOLE = "hhqqi4x"
_STEP, _LONGEST_LINE = 0.005, 32
_REFUSED = (*NO_NEW_FILE, errno.EIO)  # a failing disk may still have the file read, and so held
_FLAGS = os.O_NONBLOCK | os.O_CLOEXEC  # a FIFO that lies there must not stop anybody


class LockUnusable(PulseError):
    """The lock's file can't be opened or written."""


class HomeLock:
    """Holds `run/lock` inside `with`.

    wait: seconds to wait for another holder to leave before HomeBusy is raised; may_be_read_only: whether holding it is
    of use on a read-only file system, too.
    """

    def __init__(
        self, path: Path, version: str, wait: float = 0.0, *, may_be_read_only: bool = False
    ) -> None:
        self._path, self._version, self._wait = path, version, wait
        self._may_be_read_only, self._is_read_only = may_be_read_only, False
        self._held: int | None = None
        self._folder: HomeFolder | None = None
        self._lost_until: float | None = None

    def __enter__(self) -> "HomeLock":
        home = self._path.parent.parent
        try:
            if HomeLayout(home).events.exists():  # what is in `run/` is made anew all the time
                self._path.parent.mkdir(mode=0o700, exist_ok=True)
            self._held = self._taken(self._wait)
        except FileNotFoundError as error:
            raise NoHome(str(home)) from error
        except OSError as error:
            raise LockUnusable(f"{self._path} can't be locked: {_why(error, self._path)}") from error
        if self._path.name == LOCK:
            with suppress(OSError):
                self._folder = HomeFolder(home)
                fcntl.fcntl(self._folder, fcntl.F_OFD_SETLK, _lock(fcntl.F_RDLCK))
        return self

    def __exit__(self, *_: object) -> None:
        if self._held is not None:
            os.close(self._held)
        if self._folder:
            self._folder.close()
        self._held = self._folder = None

    def keep(self) -> None:
        """Take the name again if the file was removed, or can be written at last.

        Raises HomeBusy if somebody else still has it once they were waited for, from call to call: a call never waits.
        Raises LockUnusable while what has the name can't be a lock: then nobody else can have it either. Where the home
        itself is gone, or another one lies there, it was moved with the lock in it.
        """
        home = self._path.parent.parent
        try:
            was_moved = self._folder is not None and self._folder.was_moved()
            if self._held is not None and home.exists() and not was_moved:
                self._keep(self._held)
        except OSError as error:
            raise LockUnusable(f"{self._path} can't be locked: {error.strerror}") from error

    def _keep(self, lost: int) -> None:
        if not _still_named(lost, self._path):
            self._path.parent.mkdir(mode=0o700, exist_ok=True)
            self._is_read_only = False
            self._lost_until = self._lost_until or time.monotonic() + self._wait
            try:
                self._held = self._taken(0.0)
            except HomeBusy:
                if time.monotonic() >= self._lost_until:
                    raise
                return
            self._lost_until = None
            os.close(lost)
            leave_pid(self._path.with_name("pid"))  # run/ was deleted as a whole, as a rule
        elif self._is_read_only:
            with suppress(OSError):
                self._held = self._written()
                self._is_read_only = False
                os.close(lost)

    def _taken(self, wait: float) -> int:
        until = time.monotonic() + wait
        while (old := self._try()) is None:
            if time.monotonic() >= until:
                found = holder(self._path)
                raise HomeBusy(str(self._path.parent.parent), found.pid if found else None)
            time.sleep(_STEP)
        if self._is_read_only:
            return old
        try:
            written = self._written()
        except OSError as error:
            if error.errno not in _REFUSED:
                os.close(old)
                raise
            try:
                _overwrite(old, self._words())
            except OSError as full:
                if not self._may_be_read_only or full.errno not in _REFUSED:
                    raise
                self._is_read_only = True
                return self._taken(wait)
            return old
        os.close(old)
        return written

    def _try(self) -> int | None:
        """A descriptor of the file that bears the name, locked; None if somebody else has it."""
        while True:
            file = self._opened()
            try:
                _require_plain(file, self._path)
                kind = fcntl.F_RDLCK if self._is_read_only else fcntl.F_WRLCK
                fcntl.fcntl(file, fcntl.F_OFD_SETLK, _lock(kind))
                if self._is_read_only:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if _still_named(file, self._path):
                    return file
            except BlockingIOError:
                os.close(file)
                return None
            except BaseException:
                os.close(file)
                raise
            os.close(file)  # its holder put a new file in its place and left, between our two calls

    def _opened(self) -> int:
        """The file, for reading alone where nothing can be written and that is enough."""
        if not self._is_read_only:
            try:
                return os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | _FLAGS, 0o600)
            except OSError as error:
                if not self._may_be_read_only or error.errno not in (errno.EROFS, errno.EIO):
                    raise
            self._is_read_only = True
        return os.open(self._path, os.O_RDONLY | os.O_NOFOLLOW | _FLAGS)

    def _written(self) -> int:
        """A new file with our words, locked and then given the name, while the old one is still locked."""
        new = self._path.with_name(self._path.name + ".new")
        new.unlink(missing_ok=True)  # it may be a link to anything, and we may be root
        file = os.open(new, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            if os.geteuid() == 0:  # root may hold anybody's home for a moment, and must leave it usable
                home = os.stat(self._path.parent)
                os.fchown(file, home.st_uid, home.st_gid)
            os.write(file, self._words())
            fcntl.fcntl(file, fcntl.F_OFD_SETLK, _lock(fcntl.F_WRLCK))
            os.rename(new, self._path)
        except BaseException:
            os.close(file)
            raise
        return file

    def _words(self) -> bytes:
        ours = LockHolder(os.getpid(), boot_id(), time.time_ns() // 1000, self._version)
        return json.dumps(asdict(ours)).encode()


def _overwrite(file: int, words: bytes) -> None:
    """Say it in the file that is there, which needs neither room nor an inode; whoever reads meanwhile tries again."""
    try:
        os.pwrite(file, words.ljust(os.fstat(file).st_size), 0)
        os.ftruncate(file, len(words))
    except OSError:
        os.close(file)
        raise


def holder(path: Path) -> LockHolder | None:
    """Who holds the lock now, None if nobody does; asking disturbs nobody. pid 0: its words can't be read.

    Raises LockUnusable if nobody can tell.
    """
    for _ in range(20):
        try:
            file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | _FLAGS)
        except FileNotFoundError:
            found = _holder_of_folder(path.parent.parent) if path.name == LOCK else None
            if found and os.path.lexists(path):
                continue  # it was just being taken, and its words tell more
            return found
        except OSError as error:
            raise LockUnusable(
                f"nobody can tell whether a daemon runs here: {path} can't be opened: {_why(error, path)}"
            ) from error
        try:
            _require_plain(file, path)
            held, words = is_held(file), _parse(os.pread(file, 4096, 0))
            if held and _is_shared(file):
                return LockHolder(_flock_holder(file), boot_id(), 0, "")
            if _still_named(file, path) and (words or not held):
                return words if held else None
        finally:
            os.close(file)
        time.sleep(_STEP)  # somebody is taking it at this moment
    return LockHolder(0, "", 0, "")


def _holder_of_folder(home: Path) -> LockHolder | None:
    """Who holds the home without the lock's file, which somebody has deleted."""
    with suppress(OSError):
        folder = os.open(home, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            if is_held(folder):
                return LockHolder(_process_with_lock(os.fstat(folder)), boot_id(), 0, "")
        finally:
            os.close(folder)
    return None


def _process_with_lock(folder: os.stat_result) -> int:
    """The process that has an open file description lock on a folder; 0 if that can't be seen: the kernel tells no pid."""
    for place in Path("/proc").glob("[0-9]*/fd"):
        with suppress(OSError):
            for name in os.listdir(place):
                with suppress(OSError):
                    is_it = os.path.samestat(os.stat(place / name), folder)
                    if is_it and "OFDLCK" in (place.parent / "fdinfo" / name).read_text():
                        return int(place.parent.name)
    return 0


def is_held(file: int) -> bool:
    """Whether somebody has an open lock file locked."""
    return _kind_held(file) != fcntl.F_UNLCK


def _is_shared(file: int) -> bool:
    """Whether it is held by somebody who can't write it."""
    return _kind_held(file) == fcntl.F_RDLCK


def _kind_held(file: int) -> int:
    answer = fcntl.fcntl(file, fcntl.F_OFD_GETLK, _lock(fcntl.F_WRLCK))
    return int(struct.unpack(_WHOLE, answer)[0])


def _flock_holder(file: int) -> int:
    """The process that holds the flock of an open file; 0 if the kernel does not name it."""
    found = os.fstat(file)
    device = f"{os.major(found.st_dev):02x}:{os.minor(found.st_dev):02x}:{found.st_ino}"
    for line in Path("/proc/locks").read_text().splitlines():
        words = line.split()
        if words[1] == "FLOCK" and words[5:6] == [device]:
            return int(words[4])
    return 0


def _why(error: OSError, path: Path) -> str:
    """Why the lock's file can't be used, and what to do where something else lies in the place of its folder."""
    is_none = os.path.lexists(path.parent) and not path.parent.is_dir()
    return f"{path.parent} is no directory; move it away" if is_none else error.strerror or str(error)


def _require_plain(file: int, path: Path) -> None:
    if not stat.S_ISREG(os.fstat(file).st_mode):
        raise LockUnusable(f"{path} is no plain file; remove it")


def _lock(kind: int) -> bytes:
    """The kernel's `struct flock` over the whole file."""
    return struct.pack(_WHOLE, kind, os.SEEK_SET, 0, 0, 0)


def _still_named(file: int, path: Path) -> bool:
    with suppress(FileNotFoundError):
        return os.path.samestat(os.fstat(file), os.stat(path))
    return False


def _parse(words: bytes) -> LockHolder | None:
    try:
        return LockHolder(**json.loads(words))
    except (ValueError, TypeError):
        return None


@contextmanager
def own_pid(path: Path) -> Iterator[None]:
    """Leave the process id in a file, for tools that want one."""
    leave_pid(path)
    try:
        yield
    finally:
        with suppress(OSError), open(open_plain(path), "rb") as file:
            if file.read(_LONGEST_LINE) == _own_line():  # else the home was moved, and another one lies there
                path.unlink()


def leave_pid(path: Path) -> None:
    """Write the process id into a file, as far as that can be done: nobody needs it."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    with suppress(OSError), open(open_plain(path, flags), "wb") as file:
        file.write(_own_line())


def _own_line() -> bytes:
    return f"{os.getpid()}\n".encode()
