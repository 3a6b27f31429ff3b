"""The event loop of a daemon: its time leaves out how long it stood still, so that nobody else is blamed for that."""

import asyncio
import selectors
import time
from collections.abc import Callable

LONGEST_WAIT = 1.0
"""Seconds after which the loop turns though nothing has happened: only what is late by then is known to have stood still."""

LONGEST_TURN = 1.0
"""Seconds that a turn, or a wake, may be late and still counts as time in which the loop has listened."""


def daemon_loop(now: Callable[[], float] = time.monotonic) -> asyncio.AbstractEventLoop:
    """An event loop whose time stands still while the loop does: while its process is suspended, or gets no processor.

    A deadline is a promise to have listened for so long. On the machine's time each deadline would be over after a
    standstill before the answers that lie there were read: whoever had answered in time, a probed program or a child of
    ours, would be blamed for silence. So all deadlines here (`asyncio.timeout`, `call_later`, `loop.time()`) count what the
    loop was there for. Moments and durations that are told to people are the clock's (`pulse_core.ports.Clock`).
    """
    selector = _Listener(now)
    loop = asyncio.SelectorEventLoop(selector)
    loop.time = selector.time  # type: ignore[method-assign]  # asyncio asks `time` for all of its timers
    return loop


class _Listener(selectors.DefaultSelector):
    """A selector that knows for how long nobody has listened to it."""

    def __init__(self, now: Callable[[], float]) -> None:
        super().__init__()
        self._now, self._lost, self._returned = now, 0.0, now()

    def time(self) -> float:
        return self._now() - self._lost

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        began = self._now()
        self._leave_out(began - self._returned)
        wait = LONGEST_WAIT if timeout is None else min(timeout, LONGEST_WAIT)
        ready = super().select(wait)
        self._returned = self._now()
        self._leave_out(self._returned - began - max(wait, 0.0))
        return ready

    def _leave_out(self, late: float) -> None:
        if late > LONGEST_TURN:
            self._lost += late
