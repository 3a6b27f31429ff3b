"""The holder of a home's lock."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LockHolder:
    """Who holds a home's lock, or did last. since_at: UTC microseconds; boot: the kernel's boot id.

    pid: 0 if it is unknown.
    """

    pid: int
    boot: str
    since_at: int
    version: str
