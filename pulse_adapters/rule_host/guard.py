"""How long each piece of the authors' code may take, and which one is under way."""

import os
import signal
import time
from mmap import mmap
from types import FrameType
from typing import NamedTuple

SHARE = 0.8
"""Of the time that is left, what one rule may take of it."""
FAIR = 0.05
"""Of the whole time, what a rule must have had before it is blamed for taking too long."""
_AGAIN = 0.002
"""Seconds after which one that went on all the same is stopped again."""
_LEAST = 0.000_1
OURS = os.path.dirname(__file__)
REPLIES = 3
"""The descriptor of the pipe to the daemon."""
DEAF = 4
"""The exit status of a child whose pipe was closed by a rule."""
WIDTH = 2
"""Bytes of shared memory that say which unit is under way: its place + 1, or 0."""


class Overran(BaseException):
    """Raised in code that takes too long; no `except Exception` holds it up."""


class Turn(NamedTuple):
    """A unit under way: its place, when it is stopped, and how many seconds it was given."""

    unit: int | None
    due: float
    given: float


NOBODY = Turn(None, 0.0, 0.0)


class Guard:
    """Says in shared memory what is under way, and stops it when its share of the time is used up."""

    def __init__(self, shared: mmap) -> None:
        self._shared = shared
        self._now = time.monotonic
        self._timer = signal.setitimer
        self._status = os.fstat
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

    @property
    def is_fair(self) -> bool:
        """Whether the unit under way was given time worth the name; if not, others have used it up."""
        return self._turn.given >= self._fair

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
        self._stand_by_it()
        if outer.unit is None:
            self._turn = NOBODY
            self._timer(signal.ITIMER_REAL, 0)
            self._shared[:WIDTH] = b"\0\0"
        else:
            self._arm(outer.unit, outer.due)

    def _stand_by_it(self) -> None:
        """End right here if nobody can hear us any more, while it is still known who has done that."""
        try:
            self._status(REPLIES)
        except OSError:
            os._exit(DEAF)

    def _arm(self, unit: int, due: float) -> None:
        now = self._now()
        due = min(max(due, now + (self._until - now) * SHARE), self._last)
        self._shared[:WIDTH] = (unit + 1).to_bytes(WIDTH, "little")
        self._turn = Turn(unit, due, due - now)
        self._is_held = False
        self._timer(signal.ITIMER_REAL, max(_LEAST, due - now), _AGAIN)

    def _stop(self, number: int, frame: FrameType | None) -> None:
        """Stop what is under way, but never the host's own code, which is soon done."""
        if self._turn.unit is None or self._is_held or frame is None:
            return
        if not frame.f_code.co_filename.startswith(OURS):
            raise Overran
