"""Ends the wait between two ticks."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress

from pulse_core.model.event import Event
from pulse_core.model.payload import KINDS, Wake


class Waker:
    """Collects reasons for a tick: an urgent one ends the wait at once, others after the least gap."""

    def __init__(self) -> None:
        self._reasons: dict[str, None] = {}
        self._soon = asyncio.Event()
        self._now = asyncio.Event()
        self._ping = False

    def __call__(self, reason: str, urgent: bool = True) -> None:
        """Request a tick."""
        self._reasons[reason] = None
        self._soon.set()
        if urgent:
            self._now.set()

    def ping(self) -> None:
        """Make the loop turn once without a tick, to show that it lives."""
        self._ping = True
        self._soon.set()
        self._now.set()

    def on_events(self, events: Sequence[Event]) -> None:
        """Wake as the recorded kinds declare; a listener of the log. Unknown kinds do not wake."""
        for event in events:
            kind = KINDS.get(event.kind)
            if kind is not None and kind.wakes is not Wake.NEVER:
                self(event.kind, urgent=kind.wakes is Wake.NOW)

    async def wait(self, gap: float, seconds: float) -> str:
        """Why it is time for a tick, `timer` after `seconds`, or nothing after a ping.

        No sooner than `gap` seconds from now unless a reason is urgent.
        """
        await _until(self._now, gap)
        if not self._reasons and not self._ping:
            await _until(self._soon, max(0.0, seconds - gap))
        pinged, self._ping = self._ping, False
        reasons, self._reasons = ", ".join(list(self._reasons)[:5]), {}
        self._soon.clear()
        self._now.clear()
        return reasons or ("" if pinged else "timer")


async def _until(event: asyncio.Event, seconds: float) -> None:
    if not event.is_set():
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await event.wait()
