"""What each child of this package does: lower its priority, end at a deadline or with its parent, answer once."""

import os
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, NoReturn

from pulse_adapters.workers import child_side
from pulse_core.model.errors import PulseError

CALLS_PER_CHECK = 64
"""Calls of `Deadline.check` between two reads of the clock."""


class OrderRefused(PulseError):
    """The order can't be carried out; the message is for the user."""


class OutOfTime(Exception):
    """The deadline has passed, or the parent has died."""


class Deadline:
    """The time at which this process must end: after `seconds`, or when its parent has died."""

    def __init__(self, seconds: float) -> None:
        self._parent = os.getppid()
        self._until = time.monotonic() + seconds
        self._calls = 0

    def check(self) -> None:
        """Raise OutOfTime if it is time to end; cheap enough to call for every file and every chunk."""
        self._calls += 1
        if self._calls % CALLS_PER_CHECK == 0 and (
            time.monotonic() > self._until or os.getppid() != self._parent
        ):
            raise OutOfTime


def run_order(work: Callable[[Mapping[str, Any], Deadline], Mapping[str, Any]], *, idle: bool) -> NoReturn:
    """Carry out the one order and answer with its result; `idle`: use the disk only when it is idle."""

    def done(order: Mapping[str, Any]) -> Mapping[str, Any]:
        os.chdir("/")
        with suppress(ImportError, OSError):
            import psutil  # only here: a child that does not get so far needs none of it

            kind = (psutil.IOPRIO_CLASS_IDLE,) if idle else (psutil.IOPRIO_CLASS_BE, 7)
            psutil.Process().ionice(*kind)  # not the lowest where a full disk can't wait long
        return work(order, Deadline(order["seconds"]))

    child_side.answer_once(done, nice=19 if idle else 5)


def describe_os_error(error: OSError) -> str:
    """An OSError in words."""
    return error.strerror or str(error)
