"""What the kernel offers: without some of it Pulse does not run, without the rest it is slower or guards less."""

import ctypes
import fcntl
import os
import struct
from collections.abc import Iterator
from pathlib import Path

from upulse_cli.doctor.findings import FAIL, OK, WARN, Finding, Ground

_LANDLOCK_CREATE_RULESET, _VERSION = 444, 1
FEW_WATCHES, FEW_INSTANCES = 1_024, 16


def pidfd(ground: Ground) -> Iterator[Finding]:
    """A death is told through a pidfd, not found by polling."""
    try:
        os.close(os.pidfd_open(os.getpid()))
        yield Finding("pidfd", OK, f"the kernel ({os.uname().release}) tells deaths through pidfds")
    except OSError as error:
        words = f"the kernel ({os.uname().release}) has no pidfds: {error.strerror}"
        yield Finding("pidfd", FAIL, words, "use Linux 5.3 or later, or a container that allows pidfd_open")


def pressure(ground: Ground) -> Iterator[Finding]:
    """Pressure-stall information."""
    try:
        Path("/proc/pressure/memory").read_text()
        yield Finding("pressure", OK, "the kernel tells pressure (PSI)")
    except OSError as error:
        words = f"no pressure-stall information ({error.strerror}): [resources] pressure sees nothing"
        yield Finding("pressure", WARN, words, "boot with psi=1")


def inotify(ground: Ground) -> Iterator[Finding]:
    """How many files this user may watch."""
    limits = Path("/proc/sys/fs/inotify")
    watches = int((limits / "max_user_watches").read_text())
    instances = int((limits / "max_user_instances").read_text())
    words = f"{watches} watches and {instances} instances for each user"
    if watches < FEW_WATCHES or instances < FEW_INSTANCES:
        yield Finding("inotify", WARN, f"only {words}; log files are polled where they do not suffice",
                      "raise fs.inotify.max_user_watches and max_user_instances with sysctl")  # fmt: skip
    else:
        yield Finding("inotify", OK, words)


def sandbox(ground: Ground) -> Iterator[Finding]:
    """Landlock and seccomp, which hold the engine's rules."""
    landlock = ctypes.CDLL(None).syscall(_LANDLOCK_CREATE_RULESET, None, ctypes.c_size_t(0), _VERSION)
    seccomp = Path("/proc/sys/kernel/seccomp/actions_avail").exists()
    if landlock > 0 and seccomp:
        yield Finding("sandbox", OK, f"Landlock (ABI {landlock}) and seccomp can hold rules of your own")
        return
    missing = [name for name, there in (("Landlock", landlock > 0), ("seccomp", seccomp)) if not there]
    yield Finding("sandbox", WARN, f"the kernel has no {' and no '.join(missing)}; rules of your own are held less",
                  "use a kernel with CONFIG_SECURITY_LANDLOCK and CONFIG_SECCOMP_FILTER, and lsm=landlock")  # fmt: skip


def locks(ground: Ground) -> Iterator[Finding]:
    """Whether the file system of the home has the locks on which one writer at a time depends."""
    path = ground.home.lock if ground.home.lock.exists() else ground.home.config
    asked = struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
    try:
        with path.open("rb") as file:
            fcntl.fcntl(file, fcntl.F_OFD_GETLK, asked)
        yield Finding("locks", OK, "open-file-description locks work in the home")
    except OSError as error:
        yield Finding(
            "locks", FAIL, f"{path} can't be locked: {error.strerror}", "move the home to a local disk"
        )
