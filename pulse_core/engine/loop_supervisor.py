"""Supervises the loops that survival does without, so that none of them can end the daemon.

Whatever a loop raises is an error, and the loop is started again after a pause that grows. Loops that serve the engine and
end too often are not worth it: it is set aside, and the daemon goes on without it.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable

from pulse_core.engine.engine_context import restarts
from pulse_core.model.durations import duration_text
from pulse_core.model.errors import HomeBusy, describe_error
from pulse_core.model.moment import US_PER_SECOND
from pulse_core.ports.loops import Work, is_cancelled

LOG = logging.getLogger("pulse.daemon")
MOST_ENDS = 5
WINDOW = 600.0
"""Seconds; so many ends of loops within them, and the engine is set aside."""


class LoopSupervisor:
    """Runs loops, each for ever; `run` is a `Supervise`.

    failed: called with the words about an end; set_aside: called with the reason once there were too many.
    """

    def __init__(
        self, failed: Callable[[str], None], set_aside: Callable[[str], None] = lambda why: None
    ) -> None:
        self._failed, self._set_aside = failed, set_aside
        self._ends: deque[float] = deque(maxlen=MOST_ENDS)

    async def run(self, name: str, work: Work) -> None:
        """Do the work of a loop, and again whenever it ends; ends by being cancelled.

        Raises HomeBusy if the work does: another daemon has the home, and this one has to end.
        """
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
            except HomeBusy:
                raise
            except Exception as error:
                if is_cancelled():
                    return  # its clean-up failed
                LOG.info("the loop %r ended", name, exc_info=error)
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
