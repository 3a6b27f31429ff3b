"""A process that may open nothing more."""

import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def no_descriptors(pid: int) -> Iterator[None]:
    """All below the limit are taken: this process can open nothing more."""
    before = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    listed = os.listdir(f"/proc/{pid}/fd")  # in this process that of the look itself, too
    taken = {int(name) for name in listed if os.path.lexists(f"/proc/{pid}/fd/{name}")}
    free = next(number for number in range(len(taken) + 1) if number not in taken)
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (free, before[1]))
    try:
        yield
    finally:
        resource.prlimit(pid, resource.RLIMIT_NOFILE, before)
