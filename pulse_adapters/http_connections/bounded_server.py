"""An HTTP server that clients cannot keep from others: however many connect, and whatever they do not say or read."""

import asyncio
import resource
from contextlib import suppress
from typing import TYPE_CHECKING

import h11
import uvicorn
from starlette.requests import ClientDisconnect
from uvicorn.protocols.http.h11_impl import H11Protocol

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

MOST = 100
"""Connections at the same time; of a small limit of descriptors they take no more than a quarter."""
BACKLOG = 32
"""Connections that are accepted in one turn, before any is counted."""
PIECE = 1_024
"""Bytes of a request that are taken up before others have their turn: what they hold is parsed at once, and may be chunks of
a byte each."""
SILENT_S = 10.0
"""Seconds that a client has to send a whole request, and to read what it is answered."""


class BoundedConnection(H11Protocol):
    """A connection that is closed if its client neither asks nor reads, or asks on before it is answered.

    For one more than there may be, the oldest that waits for a request is closed, or the new one if none does.
    """

    _opened = 0.0
    _asking: asyncio.TimerHandle | None = None
    _reading: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Make room for it, and give it its time."""
        super().connection_made(transport)
        transport.max_size = PIECE  # type: ignore[attr-defined]  # what one of asyncio's sockets reads at once
        self._opened = self.loop.time()
        self._watch()
        opened = [one for one in self.connections if not one.transport.is_closing()]
        if len(opened) > most_connections():
            waiting = [one for one in opened if isinstance(one, BoundedConnection) and one.awaits_request()]
            min(waiting, key=lambda one: one._opened).transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Watch it no longer."""
        for timer in (self._asking, self._reading):
            if timer:
                timer.cancel()
        super().connection_lost(exc)

    def awaits_request(self) -> bool:
        """Whether the client has not sent a whole request."""
        return self.conn.their_state in (h11.IDLE, h11.SEND_BODY)

    def _watch(self) -> None:
        if self.awaits_request():
            self._asking = self._asking or self.loop.call_later(SILENT_S, self.transport.abort)
        elif self._asking:
            self._asking.cancel()
            self._asking = None

    def data_received(self, data: bytes) -> None:
        """Take more of a request. What is sent before the answer would be kept without end: clients of MCP do not."""
        if not self.awaits_request():
            return self.transport.abort()
        super().data_received(data)
        return self._watch()

    def on_response_complete(self) -> None:
        """Wait for the next request."""
        super().on_response_complete()
        self._watch()

    def pause_writing(self) -> None:
        """Wait until the client reads."""
        super().pause_writing()
        self._reading = self._reading or self.loop.call_later(SILENT_S, self.transport.abort)

    def resume_writing(self) -> None:
        """It has read."""
        super().resume_writing()
        if self._reading:
            self._reading.cancel()
            self._reading = None


def most_connections() -> int:
    """How many connections there may be."""
    return min(MOST, resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 4)


def bounded_server(app: "ASGIApp", grace: int) -> uvicorn.Server:
    """A server of this application. grace: seconds that requests under way have at its end."""

    async def answer(scope: "Scope", receive: "Receive", send: "Send") -> None:
        with suppress(ClientDisconnect):  # whoever hangs up is no fault, of which a traceback would be logged
            await app(scope, receive, send)

    return uvicorn.Server(
        uvicorn.Config(
            answer,
            http=BoundedConnection,
            backlog=BACKLOG,
            log_config=None,
            access_log=False,
            lifespan="off",
            timeout_graceful_shutdown=grace,
            ws="none",
            server_header=False,
        )
    )
