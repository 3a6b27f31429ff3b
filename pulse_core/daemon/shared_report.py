"""The status for all who ask for it, computed so seldom that it takes at most a tenth of the loop."""

import asyncio
from collections.abc import Callable, Mapping

from pulse_core.model.json_types import Json

PAUSE, REST = 0.05, 9.0
"""Seconds from one status to the next at least, and how many times as long as one took until the next: to compute one takes
milliseconds of the loop, which survival needs, and with hundreds of processes and conditions tens of them."""
LONGEST = 0.8
"""Seconds of such a rest at most: commands take a daemon for stuck that has not told its status within one or two."""


class SharedReport:
    """Computes the status once for all who asked in the meantime; nobody is given one from before it asked."""

    def __init__(self) -> None:
        self._number, self._due = 0, float("-inf")
        self._last: Mapping[str, Json] = {}

    async def after_now(self, compute: Callable[[], Mapping[str, Json]]) -> Mapping[str, Json]:
        """A status computed now, or soon if one was just computed."""
        loop, seen = asyncio.get_running_loop(), self._number
        while self._number == seen:
            began = loop.time()
            if (wait := self._due - began) > 0:
                await asyncio.sleep(wait)
                continue
            try:
                self._last = compute()
                self._number = seen + 1
            finally:
                self._due = (now := loop.time()) + min(max(PAUSE, REST * (now - began)), LONGEST)
        return self._last
