"""The status for all who ask for it, computed no more often than so many times a second."""

import asyncio
from collections.abc import Callable, Mapping

from pulse_core.model.json_types import Json

PAUSE = 0.05
"""Seconds from one status to the next: to compute one takes milliseconds of the loop, which survival needs."""


class SharedReport:
    """Computes the status once for all who asked in the meantime; nobody is given one from before it asked."""

    def __init__(self) -> None:
        self._number, self._at = 0, float("-inf")
        self._last: Mapping[str, Json] = {}

    async def after_now(self, compute: Callable[[], Mapping[str, Json]]) -> Mapping[str, Json]:
        """A status computed now, or soon if one was just computed."""
        loop, seen = asyncio.get_running_loop(), self._number
        while self._number == seen:
            if (wait := self._at + PAUSE - loop.time()) > 0:
                await asyncio.sleep(wait)
            else:
                self._last = compute()
                self._number, self._at = seen + 1, loop.time()
        return self._last
