"""A message that is being sent: the notices sent together, each awaited by its effect."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence

from pulse_adapters.notify.notice import RecordedNotice

Send = Callable[[Sequence[RecordedNotice]], Awaitable[Mapping[str, str]]]
"""Sends notices, oldest first; returns why each (by its id) did not arrive, or empty."""


class PendingMessage:
    """Collects notices for one turn of the event loop, then sends them; cancelled when no effect waits any more.

    Needs a running loop.
    """

    def __init__(self, send: Send) -> None:
        self._send = send
        self._notices: list[RecordedNotice] = []
        self._waiting = 0
        self.closed = False
        self._sending = asyncio.create_task(self._sent(), name="message to people")

    async def _sent(self) -> Mapping[str, str]:
        await asyncio.sleep(0)
        self.closed = True
        return await self._send(sorted(self._notices, key=lambda notice: notice.seq))

    async def take(self, notice: RecordedNotice) -> str:
        """Send this notice with the others; returns why it did not arrive, or empty."""
        self._notices.append(notice)
        self._waiting += 1
        try:
            return (await asyncio.shield(self._sending))[notice.id]
        finally:
            self._waiting -= 1
            if not self._waiting and not self._sending.done():
                self.closed = True
                self._sending.cancel()
                await asyncio.wait([self._sending])
