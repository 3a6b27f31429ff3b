"""A process that may open nothing more."""

import os
import resource
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager


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


def take_descriptors(given_back: ExitStack) -> list[int]:
    """Have this process open nothing more, until the stack is left; some that it has open for that."""
    usual = resource.getrlimit(resource.RLIMIT_NOFILE)
    numbers = [os.open(os.devnull, os.O_RDONLY) for _ in range(32)]
    for number in numbers:
        given_back.callback(os.close, number)
    given_back.callback(resource.setrlimit, resource.RLIMIT_NOFILE, usual)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(numbers) + 1, usual[1]))
    return numbers
