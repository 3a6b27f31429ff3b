"""Exponential backoff: how long to wait before a retry; the one formula for all of Pulse.

Children that must stay small import it, so it does without dataclasses, which take a mebibyte.
"""

from typing import Generic, NamedTuple, TypeVar

N = TypeVar("N", bound=float)

_MOST_DOUBLINGS = 64
"""A larger exponent gives no longer wait, and in the end a number that no float holds."""


class Backoff(NamedTuple, Generic[N]):
    """`first`, and `factor` times as long after each further failure, but at most `longest`; in any unit of time.

    jitter: up to this part of a wait is added to it, so that those that failed together don't return together.
    """

    first: N
    longest: N
    factor: int = 2
    jitter: float = 0.0

    def after(self, failures: int) -> N:
        """The wait after so many failures in a row, at least one. Whole numbers stay whole numbers."""
        if failures < 1:
            raise ValueError("there is nothing to wait for before the first failure")
        exponent = min(failures - 1, _MOST_DOUBLINGS)
        wait: N = min(self.factor**exponent * self.first, self.longest)
        return wait

    def jittered(self, failures: int, chance: float) -> float:
        """The wait with a part of the jitter; chance: from 0 to 1."""
        return self.after(failures) * (1 + self.jitter * chance)


class Restarts:
    """Decides when to restart what ended unexpectedly. Times are of any one clock, in the unit of the backoff.

    healthy: earlier ends are forgotten after a longer life than this; ends: how many there were in a row since then;
    count: how many there ever were; due: when to start the next one.
    """

    def __init__(self, backoff: Backoff[float], healthy: float) -> None:
        self.backoff, self.healthy = backoff, healthy
        self.ends = self.count = 0
        self.due = 0.0
        self._began: float | None = None

    def started(self, now: float) -> None:
        """It lives from now on."""
        self._began = now

    def ended(self, now: float) -> float:
        """It ended; how long to wait, which is until `due`."""
        if self._began is not None and now - self._began > self.healthy:
            self.ends = 0
        self._began = None
        return self.failed(now)

    def failed(self, now: float) -> float:
        """It could not be started; how long to wait, which is until `due`."""
        self.ends += 1
        self.count += 1
        wait = self.backoff.after(self.ends)
        self.due = now + wait
        return wait
