"""How long each piece of the authors' code may take, and which one is under way."""

import os
import signal
import time
from functools import cache
from mmap import mmap
from types import FrameType

from pulse_adapters.workers import descriptors
from pulse_adapters.workers.descriptors import MARK, REPLIES

SHARE = 0.8
"""Of the time that is left, what one rule may take of it."""
FAIR = 0.05
"""Of the whole time, what a rule must have had before it is blamed for taking too long."""
_AGAIN = 0.002
"""Seconds after which one that went on all the same is stopped again."""
_LEAST = 0.000_1
_NONE = bytes(MARK)
OURS = (os.path.dirname(__file__), os.path.dirname(descriptors.__file__))
DEAF = 4
"""The exit status of a child whose pipe was closed by a rule."""


class TimeBudgetExceeded(BaseException):
    """Raised in code that takes too long; no `except Exception` holds it up."""


Turn = tuple[int | None, float, float]
"""A unit under way: its place, when it is stopped, and how many seconds it was given; a plain tuple is made quickly."""


NOBODY: Turn = (None, 0.0, 0.0)


@cache
def mark_of(unit: int) -> bytes:
    """What says that a unit is under way."""
    return (unit + 1).to_bytes(MARK, "little")


class TimeBudget:
    """Says in shared memory what is under way, by its place + 1, and stops it when its share of the time is used up."""

    def __init__(self, shared: mmap) -> None:
        self.shared = shared
        self._now = time.monotonic
        self._timer = signal.setitimer
        self._status = os.get_inheritable  # the cheapest that fails where nothing is open
        self._until = self._last = self._fair = 0.0
        self._turn = NOBODY
        self._is_held = False

    def begin(self, until: float) -> None:
        """There is time until then (CLOCK_MONOTONIC). A rule may have changed the handler of the signal."""
        signal.signal(signal.SIGALRM, self._stop)
        left = until - self._now()
        self._until, self._last, self._fair = until, until - left * 0.04, left * FAIR
        self._turn = NOBODY
        self._is_held = False

    def enter_together(self, seconds: float) -> Turn:
        """Several units begin, which have this time together; each says itself that it is under way."""
        outer, self._turn = self._turn, (0, self._now() + seconds, seconds)
        self._is_held = False
        self._timer(signal.ITIMER_REAL, max(_LEAST, seconds), _AGAIN)
        return outer

    @property
    def is_late(self) -> bool:
        """Whether the time of what is under way is over."""
        return self._now() > self._turn[1]

    @property
    def is_fair(self) -> bool:
        """Whether the unit under way was given time worth the name; if not, others have used it up."""
        return self._turn[2] >= self._fair

    def enter(self, unit: int) -> Turn:
        """A unit begins, perhaps inside another one, which is returned for `back`."""
        outer = self._turn
        self._arm(unit, 0.0)
        return outer

    def hold(self) -> None:
        """The unit's own code is done with: what follows is ours, and is not stopped."""
        self._is_held = True

    def back(self, outer: Turn) -> None:
        """The unit has ended; the one around it goes on, and has its share of what is left."""
        self._is_held = True
        self.stand_by_it()
        unit, due, _ = outer
        if unit is None:
            self._turn = NOBODY
            self._timer(signal.ITIMER_REAL, 0)
            self.shared[:MARK] = _NONE
        else:
            self._arm(unit, due)

    def stand_by_it(self) -> None:
        """End right here if nobody can hear us any more, while it is still known who has done that."""
        try:
            self._status(REPLIES)
        except OSError:
            os._exit(DEAF)

    def _arm(self, unit: int, due: float) -> None:
        now = self._now()
        due = min(max(due, now + (self._until - now) * SHARE), self._last)
        self.shared[:MARK] = mark_of(unit)
        self._turn = (unit, due, due - now)
        self._is_held = False
        self._timer(signal.ITIMER_REAL, max(_LEAST, due - now), _AGAIN)

    def _stop(self, number: int, frame: FrameType | None) -> None:
        """Stop what is under way, but never the host's own code, which is soon done."""
        if self._turn[0] is None or self._is_held or frame is None:
            return
        if not frame.f_code.co_filename.startswith(OURS):
            raise TimeBudgetExceeded
