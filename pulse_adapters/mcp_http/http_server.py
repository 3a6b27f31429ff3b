"""An HTTP server that runs until a signal ends it, and what it demands of each request before an MCP server sees it."""

import asyncio
import gc
import hmac
import logging
import signal
import socket
from collections.abc import AsyncIterator, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any

from mcp.server.transport_security import TransportSecuritySettings
from starlette.responses import Response

from pulse_adapters.http_connections.bounded_server import bounded_server

if TYPE_CHECKING:
    from mcp.server.mcpserver import MCPServer
    from starlette.applications import Starlette
    from starlette.types import ASGIApp, Receive, Scope, Send

NAMES = ("127.0.0.1", "localhost", "[::1]")
LOCAL = TransportSecuritySettings(
    allowed_hosts=[f"{name}{port}" for name in NAMES for port in ("", ":*")],
    allowed_origins=[f"http://{name}{port}" for name in NAMES for port in ("", ":*")],
)
"""Who was led to this machine by another name is not answered; with port 80 clients name none."""
ANYWHERE = TransportSecuritySettings(enable_dns_rebinding_protection=False)
LONGEST_REQUEST = 1 << 20
GRACE_S = 2


def stateless_app(server: "MCPServer[Any]", path: str, is_local: bool) -> "Starlette":
    """The application of an MCP server, without sessions; is_local: whether this machine alone reaches it. Where
    others do, `RequireToken` stands before it."""
    # They log a traceback for a client that hangs up before its whole request is sent, or asks for an unknown prompt.
    for name in ("server.streamable_http", "server.runner", "shared.jsonrpc_dispatcher"):
        logging.getLogger(f"mcp.{name}").setLevel(logging.CRITICAL)
    app = server.streamable_http_app(
        streamable_http_path=path,
        json_response=True,
        stateless_http=True,
        max_request_body_size=LONGEST_REQUEST,
        transport_security=LOCAL if is_local else ANYWHERE,
    )
    app.routes[0].methods = {"POST"}  # type: ignore[attr-defined] # nothing would ever come of a GET
    return app


async def serve(app: "ASGIApp", listener: socket.socket, *begun: "Starlette") -> None:
    """Answer on this socket until a signal ends it. begun: the applications that `app` passes requests on to."""
    # The handler of the SDK colours each line of a traceback: for half a second and more, in which nobody is answered.
    logging.basicConfig(level=logging.ERROR, format="%(message)s", force=True)
    server = bounded_server(app, GRACE_S)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, server.handle_exit)  # it raises them anew at its end, which must be no failure
    async with AsyncExitStack() as stack:
        for one in begun:
            await stack.enter_async_context(one.router.lifespan_context(one))
        gc.freeze()  # all that was imported stays: to look through it again would hold up an answer
        await server.serve(sockets=[listener])


@asynccontextmanager
async def beside(work: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Have this done as long as something is served."""
    task = asyncio.create_task(work, name="beside a server")
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


class RequireToken:
    """Answers nobody who does not bring the token, which is compared in constant time, nor pages of other servers."""

    def __init__(self, app: "ASGIApp", token: str) -> None:
        self._app, self._wanted = app, f"Bearer {token}".encode()

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        if scope["type"] == "http":
            if not hmac.compare_digest(authorization(scope), self._wanted):
                return await NO_TOKEN(scope, receive, send)
            named = dict(scope["headers"])
            if (origin := named.get(b"origin")) and origin.partition(b"://")[2] != named.get(b"host"):
                return await Response("Invalid Origin header", 403)(scope, receive, send)
        return await self._app(scope, receive, send)


NO_TOKEN = Response("A token is needed", 401, {"WWW-Authenticate": "Bearer"})


def authorization(scope: "Scope") -> bytes:
    """The one header of this name; nothing if there is none, or several."""
    said = [value for name, value in scope["headers"] if name == b"authorization"]
    return bytes(said[0]) if len(said) == 1 else b""
