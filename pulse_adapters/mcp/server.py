"""Pulse's own MCP server, which tells subscribers what the events of the log may have changed, and the door through which
programs come to it and to the guidance of all projects."""

import asyncio
import inspect
import json
import re
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ResourceError, ToolError
from mcp.server.subscriptions import InMemorySubscriptionBus, ResourceUpdated
from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS, SubscriptionsListenRequestParams
from pydantic import validate_call
from starlette.responses import Response

from pulse_adapters.mcp.tools import CHANGES, RESOURCES, TOOLS, Tools
from pulse_adapters.mcp_http.http_server import NO_TOKEN, authorization, beside
from pulse_core.app.context import HomeContext
from pulse_core.model.errors import PulseError
from pulse_core.model.event import Event
from pulse_core.model.text import DATA
from pulse_core.ports.readers import EventQuery
from pulse_core.projections.incidents import KINDS

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

MOST = 1_000
"""Events of one look, and subscriptions at a time."""


class ResourceChanges(InMemorySubscriptionBus):
    """Looks at the log as long as anybody has subscribed. What is told may have changed; who is told reads it again."""

    def __init__(self, home: HomeContext) -> None:
        super().__init__()
        self._home, self._seq = home, 0
        self._held = Counter[str]()

    async def hold(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        """As middleware of the server: know what is subscribed to, and refuse what is never told."""
        if ctx.method != "subscriptions/listen":
            return await call_next(ctx)
        wanted = SubscriptionsListenRequestParams.model_validate(ctx.params).notifications
        uris = set(wanted.resource_subscriptions or ())
        if unknown := sorted(uri for uri in uris if _named(uri)[0] not in TOLD):
            raise MCPError(INVALID_PARAMS, f"{unknown[0][:200]}: nobody is told when that changes; read it")
        if len(uris) + len(self._held) > MOST:
            raise MCPError(INVALID_PARAMS, f"at most {MOST:,} resources can be subscribed to at a time")
        if not self._held:
            with self._home.events() as log:
                self._seq = log.head().seq
        self._held.update(uris)
        try:
            return await call_next(ctx)
        finally:
            self._held -= Counter(uris)

    async def look(self) -> None:
        """Tell what has changed since the last look."""
        events = await asyncio.to_thread(self._news) if self._held else ()
        for uri in [one for one in self._held if any(may_change(one, event) for event in events)]:
            await self.publish(ResourceUpdated(uri=uri))

    def _news(self) -> list[Event]:
        with self._home.events() as log:
            self._seq = min(self._seq, log.head().seq)  # one that was put back from a backup is shorter
            events = list(log.events(EventQuery(since_seq=self._seq), limit=MOST))
        self._seq = events[-1].seq if events else self._seq
        return events


ID = re.compile(r"[0-9a-f-]{36}")
TOLD = ("projects", "tasks", "task", "effect", "incidents", "incident")


def may_change(uri: str, event: Event) -> bool:
    """Whether a resource may be another after an event."""
    (about, name), (of, _, _) = _named(uri), event.kind.partition("-")
    if about in ("projects", "tasks"):
        return of in ("task", "project")
    if about == "task":
        return of == "task" and name in event.subject
    if about == "effect" and ID.fullmatch(name):
        return name in (event.id, event.subject)
    return about in TOLD and (event.kind in KINDS or (about == "effect" and of in ("effect", "silence")))


def _named(uri: str) -> tuple[str, str]:
    """What a resource is about, and of which name."""
    about, _, name = uri.removeprefix("pulse://").partition("/")
    return about, unquote(name)


PATH, GUIDANCE = "/pulse", "/mcp"
RATE, BURST = 10.0, 60.0
"""Calls of one caller: in a second for long, and at once."""
LOOK_S, LOOKS = 1.0, 60
"""Seconds between two looks at what has changed, and looks until reads are recorded."""


@dataclass
class CallAllowance:
    """How many calls a caller has left, and how often it has read since that was recorded."""

    left: float = BURST
    at: float = 0.0
    reads: int = 0

    def take(self, now: float) -> None:
        """Take one (now: seconds of any clock); raises ToolError if none is left."""
        self.left, self.at = min(BURST, self.left + RATE * max(0.0, now - self.at)), now
        if self.left < 1:
            raise ToolError(f"too many calls: {RATE:g} in a second; wait a moment")
        self.left -= 1


class PulseServer:
    """Answers agents. tools: of the present caller; changes: tells what has changed; now: seconds, which only grow."""

    def __init__(
        self, tools: Callable[[], Tools], changes: ResourceChanges, now: Callable[[], float] = time.monotonic
    ) -> None:
        self._tools, self._changes, self._now = tools, changes, now
        self._callers: dict[str, tuple[Tools, CallAllowance]] = {}

    def mcp(self) -> "MCPServer[Any]":
        """What there is to ask, and to subscribe to."""
        server: MCPServer[Any] = MCPServer(
            "Pulse",
            instructions=DATA,
            log_level="ERROR",
            subscriptions=self._changes,
            middleware=(self._changes.hold,),
            lifespan=self._served,
        )
        for tool in TOOLS:
            server.tool(name=tool.__name__, structured_output=False)(self._as_tool(tool))
        for uri, tool in RESOURCES.items():
            read = self._as_tool(tool)
            read.__annotations__ = dict.fromkeys(read.__annotations__, str)  # or the SDK printed a traceback
            server.resource(uri, name=tool.__name__, mime_type="application/json")(read)
        return server

    def _as_tool(self, tool: Callable[..., Any]) -> Callable[..., Any]:
        """The tool without the object that it is a method of, which differs from caller to caller."""

        @wraps(tool)
        async def call(**values: Any) -> str:
            tools = self._tools()
            _, limit = self._callers.get(tools.agent) or (None, CallAllowance(at=self._now()))
            self._callers[tools.agent] = tools, limit  # with the token of now
            limit.take(self._now())
            limit.reads += tool not in CHANGES
            try:
                found = await asyncio.to_thread(validate_call(getattr(tools, tool.__name__)), **values)
            except (PulseError, ValueError) as error:
                raise ResourceError(str(error)) from error
            return f"{DATA}\n{json.dumps(found, indent=1, default=str)}"

        shape = inspect.signature(tool)
        call.__signature__ = shape.replace(parameters=list(shape.parameters.values())[1:])  # type: ignore[attr-defined]
        return call

    @asynccontextmanager
    async def _served(self, server: "MCPServer[Any]") -> AsyncIterator[None]:
        try:
            async with beside(self._look()):
                yield
        finally:
            await self.say_reads()

    async def _look(self) -> None:
        while True:
            for _ in range(LOOKS):
                await asyncio.sleep(LOOK_S)
                with suppress(PulseError, OSError):  # the next look may read the log, as after a restore
                    await self._changes.look()
            await self.say_reads()

    async def say_reads(self) -> None:
        """Have it recorded how often each has read; what can't be now is the next time."""
        for tools, limit in [*self._callers.values()]:  # others come meanwhile
            if reads := limit.reads:
                limit.reads = 0  # before: the thread goes on though this is cancelled, and they are told once
                try:
                    await asyncio.to_thread(tools.say_reads, reads)
                except PulseError:
                    limit.reads += reads

    def release_claims(self) -> None:
        """Give back what was claimed in the session that has ended. Without a daemon the claims end with their leases."""
        with suppress(PulseError):
            self._tools().release_claims()


CLIENT: ContextVar[tuple[str, str]] = ContextVar("client")
PROJECT: ContextVar[str] = ContextVar("project")
"""The name and the token of whoever asks; the root of the project whose guidance is asked for."""


@dataclass(frozen=True)
class Door:
    """Passes a request on: at /pulse, with a client's token, to Pulse's own server; at /mcp/PATH to a project's guidance.

    client: returns the name of the client with a token; is_watched: whether a project was added; both may read files.
    """

    pulse: "ASGIApp"
    guidance: "ASGIApp"
    client: Callable[[str], str | None]
    is_watched: Callable[[str], bool]

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        path = scope.get("path", "")
        if path == PATH:
            kind, _, token = authorization(scope).decode("latin-1").partition(" ")
            name = await asyncio.to_thread(self.client, token) if kind == "Bearer" else None
            if name is None:
                return await NO_TOKEN(scope, receive, send)
            CLIENT.set((name, token))
            return await self.pulse(scope, receive, send)
        root = path.removeprefix(GUIDANCE)
        if root == path or not await asyncio.to_thread(self.is_watched, root):
            words = "not found; guidance is at /mcp and the path of a project that was added\n"
            return await Response(words, 404)(scope, receive, send)
        PROJECT.set(root)
        inner = {**scope, "path": GUIDANCE, "raw_path": GUIDANCE.encode()}
        return await self.guidance(inner, receive, send)
