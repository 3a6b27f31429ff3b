"""Supervises the loops that serve the engine, so that none of them can end the daemon.

Whatever a loop raises is an error of the engine, and the loop is started again after a pause that grows. Loops that end
too often are not worth their engine: it is set aside, and the daemon goes on without it.
"""

import asyncio
from collections import deque
from collections.abc import Callable

from pulse_core.engine.engine_context import restarts
from pulse_core.model.durations import duration_text
from pulse_core.model.errors import describe_error
from pulse_core.model.moment import US_PER_SECOND
from pulse_core.ports.loops import Work

MOST_ENDS = 5
WINDOW = 600.0
"""Seconds; so many ends of loops within them, and the engine is set aside."""


class LoopSupervisor:
    """Runs loops that serve the engine, each for ever; `run` is a `Supervise`.

    failed: called with the words about an end; set_aside: called with the reason once there were too many.
    """

    def __init__(self, failed: Callable[[str], None], set_aside: Callable[[str], None]) -> None:
        self._failed, self._set_aside = failed, set_aside
        self._ends: deque[float] = deque(maxlen=MOST_ENDS)

    async def run(self, name: str, work: Work) -> None:
        """Do the work of a loop, and again whenever it ends; ends by being cancelled."""
        restarting, loop = restarts(), asyncio.get_running_loop()
        while True:
            restarting.started(loop.time())
            try:
                await work()
                words = "returned unasked"
            except asyncio.CancelledError:
                if is_cancelled():
                    raise
                words = "was cancelled by its own work"
            except Exception as error:  # noqa: BLE001 - whatever it is, it is no more than an error of the engine
                if is_cancelled():
                    return  # its clean-up failed
                words = f"ended: {describe_error(error)}"
            self._count(f"the loop {name!r} {words}", loop.time())
            await asyncio.sleep(restarting.ended(loop.time()))

    def _count(self, words: str, now: float) -> None:
        self._failed(words)
        self._ends.append(now)
        if len(self._ends) == MOST_ENDS and (span := now - self._ends[0]) <= WINDOW:
            self._ends.clear()
            within = duration_text(round(span * US_PER_SECOND))
            self._set_aside(f"its loops ended {MOST_ENDS} times within {within}; at last {words}")


def is_cancelled() -> bool:
    """Whether this task was asked to end, and not only something that it waits for."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
