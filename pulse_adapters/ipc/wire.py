"""One connection as lines: what comes in is bounded, what goes out waits for the reader."""

import asyncio
import select
from collections.abc import Callable
from dataclasses import dataclass

from pulse_adapters.ipc.peer import Peer
from pulse_adapters.ipc.protocol import ALIVE, BEAT, BadRequest, error_line


@dataclass(frozen=True, slots=True)
class WireLimits:
    """What one caller may cost. line: bytes not yet worked on; idle, stuck, beat: seconds; rest: connections.

    idle counts from one request to the end of the next line, stuck while an answer is not read. `agents` is the
    part of `connections` that callers below PERSON may take, so that they can't lock the owner out; `followers` is
    the part that may be taken by requests without an end, so that there is always room for a question. share, burst: seconds
    of the loop that all callers together may take in each second, and beyond that at once.
    """

    line: int = 1 << 20
    idle: float = 60.0
    stuck: float = 10.0
    beat: float = BEAT
    connections: int = 64
    agents: int = 48
    followers: int = 48
    unsent: int = 1 << 16
    share: float = 0.1
    burst: float = 1.0


class ConnectionClosed(Exception):
    """The caller hung up, or was hung up on."""


class Wire(asyncio.Protocol):
    """Collects bytes into lines for one reader, and writes without letting the unread grow."""

    def __init__(self, limits: WireLimits, opened: Callable[["Wire", asyncio.Transport], None]) -> None:
        self._limits, self._opened = limits, opened
        self._transport: asyncio.Transport | None = None
        self.peer: Peer
        """The caller; set when the connection is opened."""
        self._read = bytearray()
        self._asked = asyncio.Event()
        self._at_work = False
        self._is_last = False
        self.since = 0.0
        """When the last request was done, or else the connection was made; the loop's time."""
        self._writable = asyncio.Event()
        self._writable.set()
        self.is_in_line = False
        """Whether a part of a line was said, and the rest comes next."""
        self.owner: asyncio.Task[None] | None = None
        """The task to cancel when the caller is gone: what it asked for concerns nobody any more."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self.since = _now()
        transport.set_write_buffer_limits(high=self._limits.unsent)
        self._opened(self, transport)

    def data_received(self, data: bytes) -> None:
        self._read += data
        if b"\n" in data:
            self._asked.set()
        if len(self._read) > self._limits.line:
            self.say(
                error_line(BadRequest(f"more than {self._limits.line} bytes at once; send less, or wait"))
            )
            self._leave()

    def eof_received(self) -> bool:
        """Whether the connection stays: for the answers to what was asked, if only the caller's sending side is closed."""
        self._is_last = (self._at_work or self._asked.is_set()) and self._polled() == select.POLLIN
        if not self._is_last:
            self._leave()
        return self._is_last

    def connection_lost(self, exc: Exception | None) -> None:
        self._leave()
        self._transport = None

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    async def line(self) -> bytes:
        """The next line; raises ConnectionClosed if it isn't whole while the caller may idle."""
        if self._at_work:
            self._at_work, self.since = False, _now()
        if not self._asked.is_set():
            if self._is_last:
                raise ConnectionClosed
            try:
                await self._within(self._limits.idle, self._asked)
            except ConnectionClosed:
                if self._read:
                    self.say(error_line(BadRequest(f"no whole line came within {self._limits.idle:g} s")))
                raise
        end = self._read.find(b"\n")
        line = bytes(self._read[:end])
        del self._read[: end + 1]
        if b"\n" not in self._read:
            self._asked.clear()
        self._at_work = True
        return line

    def is_idle(self) -> bool:
        """Whether nothing was asked that is not answered; an answer that stays unread for long counts as one."""
        if self._at_work or self._asked.is_set():
            return False
        return not self._unsent() or _now() - self.since > self._limits.stuck

    def has_news(self) -> bool:
        """Whether the caller is there and has sent something that only the kernel knows of so far."""
        return self._polled() == select.POLLIN

    def _polled(self) -> int:
        """What the kernel says of the caller: POLLIN for news or the end of what it sends, POLLHUP if it is gone."""
        if self._transport is None or self._transport.is_closing():
            return select.POLLHUP
        poll = select.poll()
        poll.register(self._transport.get_extra_info("socket"), select.POLLIN)
        return next((event for _, event in poll.poll(0)), 0)

    async def send(self, line: bytes) -> None:
        """Write a line; wait while the caller doesn't read, and raise ConnectionClosed if it doesn't for long."""
        self.say(line)
        if not self._writable.is_set():
            await self._within(self._limits.stuck, self._writable)

    def say(self, line: bytes) -> None:
        """Write a line if the caller is there."""
        if self._transport and not self._transport.is_closing():
            self._transport.write(line)

    def still_here(self) -> None:
        """Say that the daemon lives, unless the caller has things to read anyway."""
        if not (self._unsent() or self.is_in_line):
            self.say(ALIVE)

    def close(self) -> None:
        """Hang up once the caller has what was said, or at once if it is not reading."""
        if not self._transport or not self._writable.is_set():
            return self.abort()
        if self._unsent():  # nobody counts this connection any more, so it must not stay for ever
            asyncio.get_running_loop().call_later(self._limits.stuck, self.abort)
        return self._transport.close()

    def drop(self) -> None:
        """Hang up at once, and end the task of whoever waits for this caller."""
        self.abort()
        self._leave()

    def abort(self) -> None:
        """Hang up at once, whatever the caller has not read."""
        if self._transport:
            self._transport.abort()

    def _unsent(self) -> int:
        """Bytes that were said and that the kernel has not taken yet."""
        return self._transport.get_write_buffer_size() if self._transport else 0

    async def _within(self, seconds: float, event: asyncio.Event) -> None:
        try:
            async with asyncio.timeout(seconds):
                await event.wait()
        except TimeoutError as error:
            raise ConnectionClosed from error

    def _leave(self) -> None:
        owner, self.owner = self.owner, None
        self.close()
        if owner:
            owner.cancel()


def _now() -> float:
    return asyncio.get_running_loop().time()
