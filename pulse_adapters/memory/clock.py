"""Virtual time: a clock that follows its event loop, and a loop in which waiting takes no time."""

import asyncio
import selectors
from collections.abc import Callable, Sequence

from pulse_core.model.moment import US_PER_SECOND, Moment

START = 1_800_000_000 * US_PER_SECOND
"""UTC microseconds at which virtual time begins (January 2027)."""


class VirtualClock:
    """Implements `pulse_core.ports.Clock` on a loop's time; `jump` moves the wall clock alone, `reboot` the boot.

    time: tells seconds, as a virtual loop's `time`.
    """

    def __init__(self, time: Callable[[], float]) -> None:
        self._time = time
        self._wall_offset = START
        self._boot = 1
        self._booted = 0.0

    def now(self) -> Moment:
        elapsed = round(self._time() * US_PER_SECOND)
        mono = elapsed - round(self._booted * US_PER_SECOND)
        return Moment(self._wall_offset + elapsed, f"boot-{self._boot}", mono)

    def jump(self, microseconds: int) -> None:
        """Set the wall clock forward, or back if negative, as a bad time server would."""
        self._wall_offset += microseconds

    def reboot(self) -> None:
        """Begin a new boot: the boot clock starts at zero."""
        self._boot += 1
        self._booted = self._time()


def virtual_loop() -> asyncio.AbstractEventLoop:
    """An event loop whose time jumps to the next timer whenever it would wait.

    Nothing from outside can wake it, so everything that runs in it must be in memory; if it would wait for
    ever, it raises RuntimeError instead.
    """
    selector = _Leap()
    loop = asyncio.SelectorEventLoop(selector)
    loop.time = selector.time  # type: ignore[method-assign]  # asyncio asks `time` for all of its timers
    loop._clock_resolution = 1e-9  # type: ignore[attr-defined]  # as fine as the virtual clock
    return loop


class _Leap(selectors.SelectSelector):
    """A selector that advances virtual time by as long as it is asked to wait."""

    def __init__(self) -> None:
        super().__init__()
        self._now = 0.0

    def time(self) -> float:
        return self._now

    def select(self, timeout: float | None = None) -> Sequence[tuple[selectors.SelectorKey, int]]:  # type: ignore[override]  # a sequence will do
        if timeout is None:
            raise RuntimeError(
                "virtual time stands still: every task waits for something that nobody will do"
            )
        self._now += max(0.0, timeout)
        return []
