"""One connection as lines: what comes in is bounded, what goes out waits for the reader."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from pulse_adapters.ipc.protocol import ALIVE, BEAT, BadRequest, error_line


@dataclass(frozen=True, slots=True)
class Limits:
    """What one caller may cost. line: bytes not yet worked on; idle, stuck, beat: seconds; rest: connections.

    idle counts between requests, stuck while an answer is not read. `agents` is the part of `connections` that
    callers below PERSON may take, so that they can't lock the owner out.
    """

    line: int = 1 << 20
    idle: float = 60.0
    stuck: float = 10.0
    beat: float = BEAT
    connections: int = 64
    agents: int = 48
    unsent: int = 1 << 16


class Gone(Exception):
    """The caller hung up, or was hung up on."""


class Wire(asyncio.Protocol):
    """Collects bytes into lines for one reader, and writes without letting the unread grow."""

    def __init__(self, limits: Limits, opened: Callable[["Wire", asyncio.Transport], None]) -> None:
        self._limits, self._opened = limits, opened
        self._transport: asyncio.Transport | None = None
        self._read = bytearray()
        self._searched = 0
        self._news = asyncio.Event()
        self._writable = asyncio.Event()
        self._writable.set()
        self.owner: asyncio.Task[None] | None = None
        """The task to cancel when the caller is gone: what it asked for concerns nobody any more."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        transport.set_write_buffer_limits(high=self._limits.unsent)
        self._opened(self, transport)

    def data_received(self, data: bytes) -> None:
        self._read += data
        self._news.set()
        if len(self._read) > self._limits.line:
            self.say(
                error_line(BadRequest(f"more than {self._limits.line} bytes at once; send less, or wait"))
            )
            self._leave()

    def eof_received(self) -> None:
        self._leave()

    def connection_lost(self, exc: Exception | None) -> None:
        self._leave()
        self._transport = None

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    async def line(self) -> bytes:
        """The next line; Gone if it doesn't come while the caller may idle."""
        while (end := self._read.find(b"\n", self._searched)) < 0:
            self._searched = len(self._read)
            self._news.clear()
            await self._within(self._limits.idle, self._news)
        line = bytes(self._read[:end])
        del self._read[: end + 1]
        self._searched = 0
        return line

    async def send(self, line: bytes) -> None:
        """Write a line; wait while the caller doesn't read, and give it up (Gone) if it doesn't for long."""
        self.say(line)
        if not self._writable.is_set():
            await self._within(self._limits.stuck, self._writable)

    def say(self, line: bytes) -> None:
        """Write a line if the caller is there."""
        if self._transport and not self._transport.is_closing():
            self._transport.write(line)

    def still_here(self) -> None:
        """Say that the daemon lives, unless the caller has things to read anyway."""
        if self._transport and self._transport.get_write_buffer_size() == 0:
            self.say(ALIVE)

    def close(self) -> None:
        """Hang up once the caller has what was said, or at once if it is not reading."""
        if self._transport and self._writable.is_set():
            self._transport.close()
        else:
            self.abort()

    def abort(self) -> None:
        """Hang up at once, whatever the caller has not read."""
        if self._transport:
            self._transport.abort()

    async def _within(self, seconds: float, event: asyncio.Event) -> None:
        try:
            async with asyncio.timeout(seconds):
                await event.wait()
        except TimeoutError as error:
            raise Gone from error

    def _leave(self) -> None:
        owner, self.owner = self.owner, None
        self.close()
        if owner:
            owner.cancel()
