"""Tells subscribers which resources the events of the log have changed."""

import asyncio
from collections.abc import Callable, Iterator

from mcp.server.subscriptions import InMemorySubscriptionBus, ResourceUpdated, ServerEvent

from pulse_core.app.context import HomeContext
from pulse_core.app.incidents import KINDS
from pulse_core.model.event import Event
from pulse_core.ports.readers import EventQuery

MOST = 1_000
"""Events of one look."""


class ResourceChanges(InMemorySubscriptionBus):
    """Looks at the log once anybody has subscribed. What is told may have changed; who is told reads it again."""

    def __init__(self, home: HomeContext) -> None:
        super().__init__()
        self._home, self._seq = home, -1

    def subscribe(self, listener: Callable[[ServerEvent], None]) -> Callable[[], None]:
        """What is recorded from now on is told."""
        if self._seq < 0:
            with self._home.events() as log:
                self._seq = log.head().seq
        return super().subscribe(listener)

    async def look(self) -> None:
        """Tell what has changed since the last look."""
        events = await asyncio.to_thread(self._news) if self._seq >= 0 else ()
        for uri in dict.fromkeys(uri for event in events for uri in changed_by(event)):
            await self.publish(ResourceUpdated(uri=uri))

    def _news(self) -> list[Event]:
        with self._home.events() as log:
            events = list(log.events(EventQuery(since_seq=self._seq), limit=MOST))
        self._seq = events[-1].seq if events else self._seq
        return events


def changed_by(event: Event) -> Iterator[str]:
    """The resources that may be others after an event."""
    about, _, _ = event.kind.partition("-")
    if about == "effect":
        yield f"pulse://effect/{event.id if event.kind == about else event.subject}"
    if event.kind in KINDS:
        yield "pulse://incidents/3h"
    if about == "task":
        yield f"pulse://task/{event.subject}"
    if about in ("task", "project"):
        yield "pulse://projects"
