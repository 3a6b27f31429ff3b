"""What callers may take of the event loop: whoever asks for much is made to wait, and survival has the rest."""

import asyncio
import time
from collections.abc import Callable

from pulse_core.model.token_bucket import TokenBucket

MOST = 0.01
"""Seconds that one turn counts at most: the loop may have worked for others meanwhile."""


class LoopShare:
    """Has callers begin one after another, and rest once they have taken more than their share.

    What one of them takes is the processor time of the loop's thread until the next one begins: with the answer, the ticks
    and the commits that follow from it. share: seconds of that in a second, in the long run; burst: seconds at once.
    """

    def __init__(self, share: float, burst: float, used: Callable[[], float] = time.thread_time) -> None:
        self._share, self._used = share, used
        self._budget = TokenBucket(burst, share)
        self._before = used()
        self._turn = asyncio.Lock()

    async def turn(self) -> None:
        """Wait until one more may begin; in one pass of the loop one does, whoever sends how many ahead."""
        async with self._turn:
            used = self._used()
            self._budget.spend(min(used - self._before, MOST))
            self._before = used
            room = self._budget.room(asyncio.get_running_loop().time())
            await asyncio.sleep(max(0.0, -room / self._share))
