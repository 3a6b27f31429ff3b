"""What the child takes upon itself before it loads a line of the engine's code."""

import ctypes
import os
import resource
import signal
from collections.abc import Mapping, Sequence

from pulse_adapters.action_host.sparing import spare
from pulse_adapters.child.becoming import become

FILES = 256
PROCESSES = 256
"""Of a user of its own; where the user is the daemon's, a limit would count everything that one runs."""
_DEATH_SIGNAL, _NO_NEW_PRIVS = 1, 38


class Unlimited(Exception):
    """A limit that can't be had."""


def confine(memory: int, user: Sequence[int] | None, parent: int, group: int) -> Mapping[str, bool]:
    """Take on the user, the limits, and the daemon's fate, and spare it; which parts of that hold.

    memory: bytes beyond what it has; parent, group: the daemon's process, and its process group. Raises Unlimited.
    """
    try:
        _limit(memory, user is not None)
        if user:
            become(*user)
    except (OSError, ValueError) as error:
        raise Unlimited(f"the hands can't be confined: {error}") from error
    libc = ctypes.CDLL(None)
    if user and libc.prctl(_NO_NEW_PRIVS, 1, 0, 0, 0):  # no program that it starts gives back what it gave up
        raise Unlimited("the hands can't be confined: the kernel has no no_new_privs")
    libc.prctl(_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)  # after the change of user, which takes it back
    if os.getppid() != parent:
        os._exit(0)
    return spare(parent, group)


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
