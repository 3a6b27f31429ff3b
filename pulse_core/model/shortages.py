"""Shortages of the machine: errors that say nothing of who is started or asked, but that it lacks what that takes."""

from collections.abc import Mapping
from errno import EADDRNOTAVAIL, EAGAIN, EMFILE, ENFILE, ENOBUFS, ENODEV, ENOMEM

_STARTING: Mapping[int, str] = {
    EAGAIN: "Resource temporarily unavailable",
    EMFILE: "Too many open files",
    ENFILE: "Too many open files in system",
    ENOMEM: "Cannot allocate memory",
}
"""Of what it takes to start something: by number, in the words of the C library."""
_DISK = ("No space left on device", "Disk quota exceeded")
SHORTAGES: Mapping[int, str] = {
    EADDRNOTAVAIL: "no local port is free to connect from: other programs hold them",
    ENOBUFS: "No buffer space available",
    **{number: _STARTING[number] for number in (EMFILE, ENFILE, ENOMEM)},
}
"""Of what it takes to look or to ask."""


def shortage(error: BaseException) -> str:
    """What is lacking to look or to ask, in words; empty if the error is another one."""
    return SHORTAGES.get(error.errno or 0, "") if isinstance(error, OSError) else ""


def lacks_to_start(error: BaseException | None) -> bool:
    """Whether it came of too few processes, threads or descriptors, too little memory, or no null device."""
    if error is None:
        return False
    is_short = isinstance(error, MemoryError)
    is_short |= isinstance(error, OSError) and error.errno in (*_STARTING, ENODEV)
    return is_short or lacks_to_start(error.__cause__)


def tells_of_shortage(words: str) -> bool:
    """Whether a program, as git, says that it lacked room on the disk, or what it takes to start something."""
    return any(told in words for told in (*_STARTING.values(), *_DISK))
