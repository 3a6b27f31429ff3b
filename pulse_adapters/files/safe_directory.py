"""Opens directories component by component, so that no link leads elsewhere, and refuses roots that may never be one."""

import fcntl
import os
import stat
from typing import NamedTuple

from pulse_adapters.files.in_use import MountDevices
from pulse_adapters.files.worker import OrderRefused, describe_os_error

STEP = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
LIST = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
LINKS = 40

SYSTEM = frozenset(
    {"/", "/bin", "/boot", "/dev", "/etc", "/home", "/lib", "/lib32", "/lib64", "/media", "/mnt", "/opt"}
    | {"/proc", "/root", "/run", "/sbin", "/srv", "/sys", "/usr", "/usr/bin", "/usr/lib", "/usr/local"}
    | {"/usr/sbin", "/usr/share", "/var", "/var/lib", "/var/log"}
)
"""Directories that everything depends on; a person who names one of them has slipped."""

KERNELS = ("/proc/", "/sys/", "/boot/", "/etc/")
"""Nothing beneath these is anybody's rubbish."""


class SafeDirectory(NamedTuple):
    """An open directory: its real path, and a descriptor that stays valid whatever happens to the path."""

    path: str
    fd: int

    def holds(self, fd: int) -> bool:
        """Whether an open directory is still below this path, or this itself: either may have been moved."""
        real = os.readlink(f"/proc/self/fd/{fd}")
        return real == self.path or real.startswith(f"{self.path}/")

    def lock(self) -> bool:
        """Lock it against another run; False if one has locked it. Without locks on its file system, nothing is locked."""
        try:
            fcntl.flock(self.fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError:
            pass
        return True

    def close(self) -> None:
        """Close it."""
        os.close(self.fd)


def open_directory(path: str) -> SafeDirectory:
    """Open the directory at an absolute path; only links of root or of this user are followed. Raises OrderRefused.

    Raises FileNotFoundError if it is not there.
    """
    steps, real, links = path.split("/"), list[str](), 0
    here = os.open("/", STEP)
    try:
        while steps:
            name = steps.pop(0)
            if name in ("", "."):
                continue
            real = real[:-1] if name == ".." else [*real, name]
            target = None if name == ".." else _link(name, here, "/" + "/".join(real))
            if target is None:
                here = _step_to(here, name)
                continue
            links += 1
            if links > LINKS:
                raise OrderRefused(f"{path} leads through too many links")
            real = [] if target.startswith("/") else real[:-1]
            here = _step_to(here, "/") if target.startswith("/") else here
            steps[:0] = target.split("/")
        return SafeDirectory("/" + "/".join(real), os.open(".", LIST, dir_fd=here))
    except FileNotFoundError:
        raise
    except OSError as error:
        raise OrderRefused(f"{path} cannot be entered: {describe_os_error(error)}") from error
    finally:
        os.close(here)


def _link(name: str, here: int, path: str) -> str | None:
    """The target of a link, None if it is none; raises OrderRefused if its owner is not trusted."""
    said = os.lstat(name, dir_fd=here)
    if not stat.S_ISLNK(said.st_mode):
        return None
    if said.st_uid not in (0, os.geteuid()):
        raise OrderRefused(f"{path} is a link of the user {said.st_uid}; name the directory it leads to")
    return os.readlink(name, dir_fd=here)


def _step_to(here: int, name: str) -> int:
    there = os.open(name, STEP, dir_fd=here)
    os.close(here)
    return there


def reason_forbidden(path: str, home: str, own: str) -> str | None:
    """Why this real path can't be a root, or None if it can; `own` is Pulse's home, `home` that of its user."""
    if path in SYSTEM or path.startswith(KERNELS):
        return f"{path} belongs to the system; name a directory that holds nothing but what may go"
    if home == path or home.startswith(f"{path}/") or os.path.dirname(path) == "/home":
        return f"{path} holds a whole home directory; name a directory inside of it"
    if own == path or own.startswith(f"{path}/") or path.startswith(f"{own}/"):
        return f"{path} holds Pulse's own files ({own}); name another directory"
    return None


def mount_of(fd: int) -> str:
    """The number of the mount that an open file lies on; empty if /proc does not have it."""
    try:
        with open(f"/proc/self/fdinfo/{fd}") as info:
            return next((line.split()[1] for line in info if line.startswith("mnt_id:")), "")
    except OSError:
        return ""


def is_near(place: SafeDirectory, path: str) -> bool:
    """Whether a directory is on the same file system as `path`, maybe in another part of it."""
    try:
        other = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError as error:
        raise OrderRefused(f"{path} cannot be looked at: {describe_os_error(error)}") from error
    try:
        if os.fstat(other).st_dev == os.fstat(place.fd).st_dev:
            return True
        mounts = MountDevices()
        device = mounts.device(mount_of(place.fd))
        return bool(device) and device == mounts.device(mount_of(other))
    finally:
        os.close(other)
