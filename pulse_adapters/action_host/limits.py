"""Confines the child before it loads any of the engine's code: user, resource limits, death signal."""

import ctypes
import os
import resource
import signal
from collections.abc import Sequence

from pulse_adapters.workers.drop_privileges import become_user

FILES = 256
PROCESSES = 256
"""Of a user of its own; where the user is the daemon's, a limit would count everything that one runs."""
_DEATH_SIGNAL, _NO_NEW_PRIVS = 1, 38


class LimitUnavailable(Exception):
    """A limit that can't be set."""


def confine(memory: int, user: Sequence[int] | None, parent: int) -> None:
    """Switch to the user, set the limits, and die with the daemon. Raises LimitUnavailable.

    Only a user of its own keeps this process from the daemon: without one it may do what the daemon may, which
    `upulse status` calls `isolation: partial (no user)`. memory: bytes beyond what it has; parent: the daemon's pid.
    """
    try:
        _limit(memory, user is not None)
        if user:
            become_user(*user)
    except (OSError, ValueError) as error:
        raise LimitUnavailable(f"the action host can't be confined: {error}") from error
    libc = ctypes.CDLL(None)
    if user and libc.prctl(_NO_NEW_PRIVS, 1, 0, 0, 0):  # no program that it starts gives back what it gave up
        raise LimitUnavailable("the action host can't be confined: the kernel has no no_new_privs")
    libc.prctl(_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)  # after the change of user, which takes it back
    if os.getppid() != parent:
        os._exit(0)


def _limit(memory: int, is_alone: bool) -> None:
    # Not RLIMIT_AS: programs that it starts inherit it, and some reserve much that they never use.
    _set(resource.RLIMIT_DATA, _data() + memory)
    _set(resource.RLIMIT_CORE, 0)
    if is_alone:
        _set(resource.RLIMIT_NPROC, PROCESSES)
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]  # it stays, for programs that need more and say so
    resource.setrlimit(
        resource.RLIMIT_NOFILE, (FILES if hard == resource.RLIM_INFINITY else min(FILES, hard), hard)
    )


def _set(what: int, most: int) -> None:
    hard = resource.getrlimit(what)[1]
    most = most if hard == resource.RLIM_INFINITY else min(most, hard)
    resource.setrlimit(what, (most, most))


def _data() -> int:
    with open("/proc/self/status") as told:
        kibibytes = next(line.split()[1] for line in told if line.startswith("VmData"))
    return int(kibibytes) * 1024
