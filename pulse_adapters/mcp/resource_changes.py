"""Tells subscribers which of the resources that they name the events of the log may have changed."""

import asyncio
import re
from collections import Counter
from typing import Any
from urllib.parse import unquote

from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.subscriptions import InMemorySubscriptionBus, ResourceUpdated
from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS, SubscriptionsListenRequestParams

from pulse_core.app.context import HomeContext
from pulse_core.model.event import Event
from pulse_core.ports.readers import EventQuery
from pulse_core.projections.incidents import KINDS

MOST = 1_000
"""Events of one look."""
MOST_HELD = 1_000
"""Subscriptions at a time."""
NOT_TOLD = "nobody is told when that changes; read it when you want to know it"


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
            raise MCPError(INVALID_PARAMS, f"{unknown[0][:200]}: {NOT_TOLD}")
        if len(uris) + len(self._held) > MOST_HELD:
            raise MCPError(INVALID_PARAMS, f"at most {MOST_HELD:,} resources can be subscribed to at a time")
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
