"""The doctor's checks of this machine: Python, the kernel, the disk, the clock, and the home's owner."""

import ctypes
import os
import platform
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import psutil

from pulse_adapters.host.clock import SystemClock
from pulse_adapters.sandbox import landlock
from pulse_adapters.workers.full_disk import free_room
from pulse_adapters.workers.posix_spawn import can_spawn_in_group
from pulse_adapters.workers.process_access import is_shown_less
from pulse_adapters.workers.read_only import is_read_only
from pulse_adapters.workers.source_locations import describe_error
from pulse_adapters.workers.untrusted_paths import hand_over, make_private
from pulse_adapters.workers.users import user_name
from pulse_core import __version__
from pulse_core.app.doctor import FAIL, OK, WARN, Finding
from pulse_core.home import HomeLayout
from pulse_core.model.moment import Moment
from pulse_core.model.text import count, format_size

PACKAGES = (
    "aiosqlite", "dnspython", "GitPython", "httpx", "psutil", "pydantic", "rich", "typer", "uuid-utils", "watchfiles"
)  # fmt: skip
FEW_WATCHES, FEW_INSTANCES = 1_024, 16
FULL, NEARLY_FULL = 16 << 20, 512 << 20
FEW_INODES = 1_000
DISTANT = {"nfs", "nfs4", "cifs", "smb3", "9p", "ceph", "afs", "glusterfs", "fuse.sshfs"}
FLEETING = {"tmpfs", "ramfs"}
JUMP_US = 5_000_000
_UNSYNCHRONISED = 0x40
PRIVATE = 0o700
STORES = (
    "config.toml",
    "conf.d",
    "conf.d/*",
    "*.db*",
    "objects",
    "objects/??",
    "logs",
    "logs/*",
    "run",
    "run/*",
)


@dataclass(frozen=True)
class HostChecks:
    """Checks of the machine around a home. last_start: when the daemon last started, None if unknown."""

    home: HomeLayout
    last_start: Callable[[], Moment | None]

    def python(self) -> Iterator[Finding]:
        """Check the version of the Python interpreter."""
        words = f"Pulse {__version__}, Python {platform.python_version()}, {sys.executable}"
        yield Finding("python", OK, words)

    def packages(self) -> Iterator[Finding]:
        """Check that the required packages can be imported."""
        found, missing = [], []
        for package in PACKAGES:
            try:
                found.append(f"{package} {version(package)}")
            except PackageNotFoundError:
                missing.append(package)
            except Exception as error:  # noqa: BLE001 - what an installer left there may be anything
                missing.append(f"{package} ({describe_error(error)})")
        if missing:
            words = f"not installed, or not as a whole: {', '.join(missing)}"
            yield Finding("packages", FAIL, words, "install Pulse again: pip install upulse")
        else:
            yield Finding("packages", OK, ", ".join(found))

    def pidfd(self) -> Iterator[Finding]:
        """Check for pidfds, through which the daemon is notified of deaths."""
        try:
            os.close(os.pidfd_open(os.getpid()))
            yield Finding("pidfd", OK, f"the kernel ({os.uname().release}) tells deaths through pidfds")
        except OSError as error:
            words = f"the kernel ({os.uname().release}) has no pidfds: {error.strerror}"
            remedy = "use Linux 5.3 or later, or a container that allows pidfd_open"
            yield Finding("pidfd", FAIL, words, remedy)

    def process_trees(self) -> Iterator[Finding]:
        """Say what of a guarded process may not be ended with it."""
        if can_spawn_in_group():
            words = "guarded processes are born in their control groups, where those can be made"
        else:
            library = os.confstr("CS_GNU_LIBC_VERSION") if "CS_GNU_LIBC_VERSION" in os.confstr_names else None
            words = (
                f"{library or 'the C library'} starts no process in a control group (glibc 2.39 does): what leaves"
                " its parents, session and environment within 40 ms of the start of a guarded process, or longer where many"
                " are started at once, is not ended with it"
            )
        yield Finding("process trees", OK, words)
        mounts = Path("/proc/self/mountinfo").read_text(errors="replace").splitlines()
        if is_shown_less() and any(" /proc " in line and "hidepid=" in line for line in mounts):
            words = "/proc is mounted with hidepid, and root lacks CAP_SYS_PTRACE here: what processes of other users have"
            remedy = "mount /proc without hidepid, or give that right (docker run --cap-add SYS_PTRACE)"
            yield Finding("process trees", WARN, f"{words} detached is not seen, nor ended with them", remedy)

    def pressure(self) -> Iterator[Finding]:
        """Check for pressure stall information (PSI)."""
        try:
            Path("/proc/pressure/memory").read_text()
            yield Finding("pressure", OK, "the kernel tells pressure (PSI)")
        except OSError as error:
            words = f"no pressure-stall information ({error.strerror}): [resources] pressure sees nothing"
            yield Finding("pressure", WARN, words, "boot with psi=1")

    def inotify(self) -> Iterator[Finding]:
        """Check how many files this user may watch."""
        limits = Path("/proc/sys/fs/inotify")
        watches = int((limits / "max_user_watches").read_text())
        instances = int((limits / "max_user_instances").read_text())
        words = f"{watches} watches and {instances} instances for each user"
        if watches < FEW_WATCHES or instances < FEW_INSTANCES:
            yield Finding("inotify", WARN, f"only {words}; log files are polled where they do not suffice",
                          "raise fs.inotify.max_user_watches and max_user_instances with sysctl")  # fmt: skip
        else:
            yield Finding("inotify", OK, words)

    def sandbox(self) -> Iterator[Finding]:
        """Check for Landlock and seccomp, which confine the engine's rules."""
        abi = landlock.abi() or 0
        seccomp = Path("/proc/sys/kernel/seccomp/actions_avail").exists()
        if abi > 0 and seccomp:
            yield Finding("sandbox", OK, f"Landlock (ABI {abi}) and seccomp can hold rules of your own")
            return
        missing = [name for name, there in (("Landlock", abi > 0), ("seccomp", seccomp)) if not there]
        yield Finding("sandbox", WARN, f"the kernel has no {' and no '.join(missing)}; rules of your own are held less",
                      "use a kernel with CONFIG_SECURITY_LANDLOCK and CONFIG_SECCOMP_FILTER, and lsm=landlock")  # fmt: skip

    def disk(self) -> Iterator[Finding]:
        """Check that the disk has room for the log."""
        found = os.statvfs(self.home.path)
        free = free_room(found)
        told = f"{format_size(free)} free" if found.f_blocks else "nobody can tell how much is free"
        words = f"{told} for {self.home.path}"
        remedy = "make room; in the home: damaged/, logs/ and bundles/ may go, and upulse gc"
        yield Finding("disk", FAIL if free < FULL else WARN if free < NEARLY_FULL else OK, words,
                      remedy if free < NEARLY_FULL else "")  # fmt: skip
        if found.f_files:
            few = found.f_favail < FEW_INODES
            remedy = "remove files; of the home's, upulse gc removes those of no use" if few else ""
            yield Finding("inodes", WARN if few else OK, f"{found.f_favail} free", remedy)

    def file_system(self) -> Iterator[Finding]:
        """Check that the home's file system is durable and supports locks."""
        kind = file_system_type(self.home.path)
        if kind in DISTANT:
            words = f"the home lies on {kind}, which does not lock and map files as SQLite needs it"
            yield Finding("file system", FAIL, words, "move the home to a local disk")
        elif is_read_only(self.home.path):
            words = f"{kind}, read-only: nothing is recorded; a daemon guards from memory"
            yield Finding(
                "file system", FAIL, words, "mend the disk, then make it writable: mount -o remount,rw"
            )
        elif kind in FLEETING:
            yield Finding("file system", WARN, f"the home lies on {kind} and is gone when the machine restarts",
                          "move the home to a disk")  # fmt: skip
        else:
            yield Finding("file system", OK, kind)

    def clock(self) -> Iterator[Finding]:
        """Check that the wall clock is synchronised, and that it was not set while the machine was up."""
        status = kernel_clock_status()
        if status is None:
            words = "whether the clock is synchronised can't be known"
            yield Finding("clock", WARN, words, "see: timedatectl")
        elif status & _UNSYNCHRONISED:
            words = "the clock is not synchronised; durations are right all the same, times of day may not be"
            yield Finding("clock", WARN, words, "run chrony, systemd-timesyncd, or another NTP client")
        else:
            yield Finding("clock", OK, "the clock is synchronised")
        if shift := self.shift_of_clock():
            far = f"{'forward' if shift > 0 else 'back'} by {abs(shift) / 1e6:.0f} s"
            yield Finding("clock jump", WARN, f"the wall clock was set {far} since the daemon last started",
                          "nothing: durations come from the boot clock; only times of day before that are off")  # fmt: skip

    def shift_of_clock(self) -> int:
        """How far the wall clock was set since the daemon started in this boot, microseconds; 0 if it was not."""
        now, last = SystemClock().now(), self.last_start()
        if last is None or last.boot != now.boot:
            return 0
        shift = (now.at - now.mono) - (last.at - last.mono)
        return shift if abs(shift) > JUMP_US else 0

    def access(self) -> Iterator[Finding]:
        """Check that only their owner may access the home and its run/."""
        for path in (self.home.path, self.home.run):
            if not path.exists():
                continue
            mode = stat.S_IMODE(path.stat().st_mode)
            if mode != PRIVATE:
                fault = "others may look at settings and secrets, or the daemon can't work there"
                words = f"{path} has mode {mode:04o}: {fault}"
                yield Finding(
                    "access", FAIL, words, f"chmod 700 {path}", partial(_make_private, path, self.home.path)
                )
            else:
                yield Finding("access", OK, f"{path} is its owner's alone")

    def owners(self) -> Iterator[Finding]:
        """Check that every file in the home belongs to its owner, as whom the daemon runs."""
        home = self.home.path
        owner = home.stat()
        found = [path for pattern in STORES for path in home.glob(pattern)]
        strange = [path for path in found if _owner(path) not in (owner.st_uid, None)]
        if not strange:
            yield Finding("owner", OK, f"everything belongs to {user_name(owner.st_uid)}")
            return
        more = f" and {len(strange) - 1} more" if len(strange) > 1 else ""
        words = f"{strange[0]}{more} does not belong to {user_name(owner.st_uid)}, whose home it is"

        def repair() -> str:
            given = sum(hand_over(path, home) for path in strange)
            left = f"; {len(strange) - given} that are not root's are left" if given < len(strange) else ""
            return f"{count(given, 'file')} went to {user_name(owner.st_uid)}{left}"

        yield Finding("owner", FAIL, words, f"as root: chown -R {user_name(owner.st_uid)} {home}",
                      repair if os.geteuid() == 0 else None)  # fmt: skip


def file_system_type(path: Path) -> str:
    """The type of the file system that holds this path."""
    here = Path(os.path.realpath(path))
    mounts = [mount for mount in psutil.disk_partitions(all=True) if here.is_relative_to(mount.mountpoint)]
    return max(mounts, key=lambda mount: len(mount.mountpoint)).fstype if mounts else "unknown"


class _Timex(ctypes.Structure):
    _fields_ = (
        ("modes", ctypes.c_uint),
        *((name, ctypes.c_long) for name in ("offset", "frequency", "maxerror", "esterror")),
        ("status", ctypes.c_int),
        ("rest", ctypes.c_byte * 256),
    )


def kernel_clock_status() -> int | None:
    """The status bits of adjtimex(2), or None if the call fails."""
    asked = _Timex()
    answer = ctypes.CDLL(None).adjtimex(ctypes.byref(asked))
    return None if answer < 0 else int(asked.status)


def _make_private(path: Path, home: Path) -> str:
    make_private(path, home)
    return f"{path} has mode 0700 now"


def _owner(path: Path) -> int | None:
    with suppress(FileNotFoundError):
        return path.lstat().st_uid
    return None
