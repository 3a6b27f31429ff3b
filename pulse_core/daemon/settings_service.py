"""A service that restarts its work when a group of settings changes."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from pulse_core.daemon.request_handler import RequestHandler
from pulse_core.model.event import Event
from pulse_core.model.kinds import SettingsLoaded

T = TypeVar("T")


@dataclass(frozen=True)
class SettingsService(Generic[T]):
    """Runs the work of a group of settings for ever; cancels and restarts it when they change. No start waits for it."""

    settings: Callable[[], T]
    work: Callable[[T], Awaitable[None]]

    async def __call__(self, handler: RequestHandler, begun: Callable[[], None]) -> None:
        """A `Service` of the daemon."""
        begun()
        loaded = asyncio.Event()

        def on_events(events: Sequence[Event]) -> None:
            if any(event.kind == SettingsLoaded.kind for event in events):
                loaded.set()

        handler.log.listen(on_events)
        try:
            while True:
                await self._until_changed(loaded)
        finally:
            handler.log.unlisten(on_events)

    async def _until_changed(self, loaded: asyncio.Event) -> None:
        current = self.settings()
        async with asyncio.TaskGroup() as group:
            working = group.create_task(_awaited(self.work(current)), name="sidecar")
            while self.settings() == current:
                await loaded.wait()
                loaded.clear()
            working.cancel()


async def _awaited(work: Awaitable[None]) -> None:
    await work
