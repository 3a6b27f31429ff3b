"""What each child of this room does first and last: be modest, end when nobody waits any more, answer once."""

import os
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, NoReturn

from pulse_adapters.workers import child_side
from pulse_core.model.errors import PulseError

CALLS_PER_CHECK = 64
"""Calls of `Watch.beat` between two real looks."""


class OrderRefused(PulseError):
    """Why the order can't be carried out, in words for people."""


class OutOfTime(PulseError):
    """Nobody waits any more, or not much longer."""

    def __init__(self) -> None:
        super().__init__("it took too long")


class Deadline:
    """Tells when it is time to end: `seconds` are over, or the parent has died, which nobody else would notice."""

    def __init__(self, seconds: float) -> None:
        self._parent = os.getppid()
        self._until = time.monotonic() + seconds
        self._beats = 0

    def beat(self) -> None:
        """Raise OutOfTime if it is time to end; cheap enough for every file and every piece of one."""
        self._beats += 1
        if self._beats % CALLS_PER_CHECK == 0 and (
            time.monotonic() > self._until or os.getppid() != self._parent
        ):
            raise OutOfTime


def run_order(work: Callable[[Mapping[str, Any], Deadline], Mapping[str, Any]], *, idle: bool) -> NoReturn:
    """Do the one order and answer with what comes of it; `idle`: only when nobody else needs the disk."""

    def done(order: Mapping[str, Any]) -> Mapping[str, Any]:
        os.chdir("/")
        lower_priority(idle)
        return work(order, Deadline(order["seconds"]))

    child_side.answer_once(done)


def lower_priority(idle: bool) -> None:
    """Give way to others: to everybody if `idle`, else as far as a machine without room can wait for."""
    os.nice(19 if idle else 5)
    with suppress(ImportError, OSError):
        import psutil  # only here: a child that does not get so far needs none of it

        own = psutil.Process()
        own.ionice(psutil.IOPRIO_CLASS_IDLE) if idle else own.ionice(psutil.IOPRIO_CLASS_BE, 7)


def describe_os_error(error: OSError) -> str:
    """An error of the system in words."""
    return error.strerror or str(error)
