"""Limits the time of each unit of the authors' code, and records which unit runs."""

import os
import signal
import time
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
LOADING = 65_000
"""The unit under way while the engine is loaded; the ones after it are the plugins, in their order."""
_NONE = bytes(MARK)
OURS = (os.path.dirname(__file__), os.path.dirname(descriptors.__file__))
DEAF = 4
"""The exit status of a child whose pipe was closed by a rule."""


class TimeBudgetExceeded(BaseException):
    """Raised in code that takes too long; `except Exception` does not catch it."""


Turn = tuple[int | None, float, float]
"""A unit under way: its place, when it is stopped, and how many seconds it was given; a plain tuple is made quickly."""


NOBODY: Turn = (None, 0.0, 0.0)


class TimeBudget:
    """Writes the running unit (its index + 1) to shared memory, and stops it when its share of the time is used up."""

    def __init__(self, shared: mmap) -> None:
        self.shared = shared
        self._now = time.monotonic
        self._timer = signal.setitimer
        self._status = os.get_inheritable  # the cheapest that fails where nothing is open
        self._until = self._last = self._fair = 0.0
        self._turn = NOBODY
        self._is_held = self._is_stopped = False

    def begin(self, until: float) -> None:
        """Set the deadline (CLOCK_MONOTONIC), and the signal handler again, since a rule may have changed it."""
        signal.signal(signal.SIGALRM, self._stop)
        left = until - self._now()
        self._until, self._last, self._fair = until, until - left * 0.04, left * FAIR
        self._turn = NOBODY
        self._is_held = False

    def enter_together(self, seconds: float) -> Turn:
        """Start several units that share this time; each marks itself as running."""
        outer, self._turn = self._turn, (0, self._now() + seconds, seconds)
        self._is_held = self._is_stopped = False
        self._timer(signal.ITIMER_REAL, max(_LEAST, seconds), _AGAIN)
        return outer

    @property
    def is_late(self) -> bool:
        """Whether the running unit's time is over."""
        return self._now() > self._turn[1]

    @property
    def is_fair(self) -> bool:
        """Whether the running unit was given enough time; if not, others have used it up."""
        return self._turn[2] >= self._fair

    def has_stopped(self, error: BaseException) -> bool:
        """Whether the running unit raised this since it took too long: a library may make another exception of that."""
        return self._is_stopped or isinstance(error, TimeBudgetExceeded)

    def enter(self, unit: int) -> Turn:
        """Start a unit, maybe inside another one, which is returned for `back`."""
        outer = self._turn
        self._arm(unit, 0.0)
        return outer

    def hold(self) -> None:
        """Mark the end of the unit's own code: the host's code that follows is not stopped."""
        self._is_held = True

    def back(self, outer: Turn) -> None:
        """End the unit; the one around it goes on with its share of the time left."""
        self._is_held = True
        self.exit_if_pipe_is_closed()
        unit, due, _ = outer
        if unit is None:
            self._turn = NOBODY
            self._timer(signal.ITIMER_REAL, 0)
            self.shared[:MARK] = _NONE
        else:
            self._arm(unit, due)

    def exit_if_pipe_is_closed(self) -> None:
        """Exit at once if the unit has closed the reply pipe, while shared memory still names the unit that did it."""
        try:
            self._status(REPLIES)
        except OSError:
            os._exit(DEAF)

    def _arm(self, unit: int, due: float) -> None:
        now = self._now()
        due = min(max(due, now + (self._until - now) * SHARE), self._last)
        self.shared[:MARK] = (unit + 1).to_bytes(MARK, "little")
        self._turn = (unit, due, due - now)
        self._is_held = self._is_stopped = False
        self._timer(signal.ITIMER_REAL, max(_LEAST, due - now), _AGAIN)

    def _stop(self, number: int, frame: FrameType | None) -> None:
        """Stop the running unit, but never the host's own code, which ends soon."""
        if self._turn[0] is None or self._is_held or frame is None:
            return
        if not frame.f_code.co_filename.startswith(OURS):
            self._is_stopped = True
            raise TimeBudgetExceeded
