"""Who holds a home."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LockHolder:
    """Who holds a home's lock, or did last. since_at: UTC microseconds; boot: the kernel's boot id.

    pid: 0 if it can't be told who it is.
    """

    pid: int
    boot: str
    since_at: int
    version: str
