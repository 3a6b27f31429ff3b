"""The MCP server of one project's guidance: a resource, two tools and a prompt, over streamable HTTP without sessions."""

import asyncio
import hmac
import json
import signal
import socket
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, nullcontext, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import uvicorn
from mcp.server.mcpserver import MCPServer
from mcp.server.transport_security import TransportSecuritySettings
from starlette.responses import Response

from pulse_adapters.guidance.file_watch import FileWatch
from pulse_core.guidance.answers import REPLAN, Answer
from pulse_core.guidance.protocol import CONTEXT_URI, ENDPOINT
from pulse_core.guidance.service import GuidanceService
from pulse_core.model.errors import PulseError, describe_error

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

T = TypeVar("T")
LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
LONGEST_REQUEST = 1 << 20
LOOK_S = 10.0
"""Seconds between two looks where inotify says nothing."""
GRACE_S = 2


class GuidanceServer:
    """Serves one project. say: hears what went wrong while nobody asked."""

    def __init__(self, service: GuidanceService, root: str, say: Callable[[str], None]) -> None:
        self._service, self._root, self._say = service, root, say
        # One thread: it has the connection to the log, and everybody waits for the log anyway.
        self._thread = ThreadPoolExecutor(1, "guidance")

    def prepare(self, begin: Callable[[], T]) -> T:
        """Do this in the thread in which everything is done later."""
        return self._thread.submit(begin).result()

    def close(self) -> None:
        """Answer nothing more."""
        self._thread.shutdown()

    async def serve(self, listener: socket.socket, token: str | None) -> None:
        """Answer on this socket until a signal ends it."""
        host = listener.getsockname()[0]
        config = uvicorn.Config(
            self.app(host, token),
            log_config=None,
            access_log=False,
            lifespan="on",
            timeout_graceful_shutdown=GRACE_S,
            ws="none",
            server_header=False,
        )
        server = _Server(config)
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, partial(setattr, server, "should_exit", True))
        watching = asyncio.create_task(self._look_at_changes(), name="guidance files")
        try:
            await server.serve(sockets=[listener])
        finally:
            watching.cancel()
            with suppress(asyncio.CancelledError):
                await watching
            self.close()

    def app(self, host: str, token: str | None) -> "ASGIApp":
        """The HTTP application."""
        found = self.mcp().streamable_http_app(
            streamable_http_path=ENDPOINT,
            json_response=True,
            stateless_http=True,
            max_request_body_size=LONGEST_REQUEST,
            transport_security=_security(host),
        )
        return found if token is None else RequireToken(found, token)

    def mcp(self) -> "MCPServer[Any]":
        """What there is to ask."""
        server: MCPServer[Any] = MCPServer("PulseAgent", log_level="ERROR", subscriptions=False)

        @server.resource(CONTEXT_URI, mime_type="text/plain")
        async def latest_context() -> str:
            """The task, the guidance, the constraints and the plan as they are now, and what has changed last."""
            return await self._asked(self._service.context, self._root)

        @server.tool(structured_output=False)
        async def pulse_should_interrupt(last_seen_event_id: str | None = None) -> str:
            """Whether to stop and replan, since guidance or constraints have changed. Ask before you go on with long work.

            last_seen_event_id: the latest_event_id of the answer before; it affects has_new_events and changed_files alone.
            """
            return _text(await self._asked(self._service.should_interrupt, self._root, last_seen_event_id))

        @server.tool(structured_output=False)
        async def pulse_ack_replan(event_id: str) -> str:
            """Acknowledge that the plan was revised for the pending change of guidance or constraints.

            event_id: the pending_replan_event_id of pulse_should_interrupt.
            """
            return _text(await self._asked(self._service.acknowledge, self._root, event_id))

        @server.prompt()
        def pulse_replan() -> str:
            """What to do before going on, and how to replan."""
            return REPLAN

        return server

    async def _asked(self, method: Callable[..., T], *values: Any) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, partial(method, *values))

    async def _look_at_changes(self) -> None:
        """Look whenever a file has changed, and now and then; what can't be recorded is tried again."""
        changed, told = asyncio.Event(), ""
        async with _closing(FileWatch(changed.set)) as watch:
            while True:
                watch.keep((self._root,))
                changed.clear()
                try:
                    await self._asked(watch.watch, self._root)
                    await self._asked(self._service.look, self._root)
                    told = ""
                except (PulseError, OSError) as error:
                    if (words := describe_error(error)) != told:
                        self._say(told := words)
                with suppress(TimeoutError):
                    async with asyncio.timeout(LOOK_S):
                        await changed.wait()


class RequireToken:
    """Answers nobody who does not bring the token, which is compared in constant time, nor pages of other servers."""

    def __init__(self, app: "ASGIApp", token: str) -> None:
        self._app, self._wanted = app, f"Bearer {token}".encode()

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        if scope["type"] == "http":
            said = [value for name, value in scope["headers"] if name == b"authorization"]
            if not hmac.compare_digest(said[0] if len(said) == 1 else b"", self._wanted):
                refused = Response("A token is needed", 401, {"WWW-Authenticate": "Bearer"})
                return await refused(scope, receive, send)
            named = dict(scope["headers"])
            if (origin := named.get(b"origin")) and origin.partition(b"://")[2] != named.get(b"host"):
                return await Response("Invalid Origin header", 403)(scope, receive, send)
        return await self._app(scope, receive, send)


class _Server(uvicorn.Server):
    """Leaves the signals to its caller, which ends with exit code 0."""

    def capture_signals(self) -> Any:
        """Capture none."""
        return nullcontext()


@asynccontextmanager
async def _closing(watch: FileWatch) -> AsyncIterator[FileWatch]:
    try:
        yield watch
    finally:
        watch.close()


def _security(host: str) -> TransportSecuritySettings:
    """Which names a client may call this machine by: a page in a browser that was led here has another one.

    At an address that stands for all of them it may be any name, and the token keeps such pages out.
    """
    if host in ("0.0.0.0", "::"):
        return TransportSecuritySettings(enable_dns_rebinding_protection=False)
    own = f"[{host}]" if ":" in host else host
    names = list(dict.fromkeys((*LOOPBACK, own)))
    return TransportSecuritySettings(
        enable_dns_rebinding_protection=True,
        allowed_hosts=[*names, *(f"{name}:*" for name in names)],
        allowed_origins=[f"http://{name}{port}" for name in names for port in ("", ":*")],
    )


def _text(answer: Answer) -> str:
    return json.dumps(answer, indent=2)
