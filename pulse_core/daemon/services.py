"""Services that run beside the loops: the check of the whole log, and work that restarts when its settings change."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from pulse_core.daemon.request_handler import RequestHandler
from pulse_core.model.errors import PulseError
from pulse_core.model.event import Draft, Event
from pulse_core.model.kinds import LogVerified, SettingsLoaded
from pulse_core.ports.log import EventLog

T = TypeVar("T")

DELAY = 3.0
LOG = logging.getLogger("pulse.log")
Verify = Callable[[], Awaitable[LogVerified]]


async def check_log(log: EventLog, verify: Verify) -> None:
    """Verify the log once and record the result; then wait for ever, as a service of the daemon does.

    verify: reads the log in another process. It may raise PulseError, OSError, or ValueError or KeyError for an
    invalid answer.
    """
    await asyncio.sleep(DELAY)
    try:
        found = await verify()
        if found.fault:
            LOG.critical("the event log is damaged: %s", found.fault)
        await log.append(Draft(found))
    except (PulseError, OSError, ValueError, KeyError) as error:
        LOG.error("the background check of the log failed: %s", error)
    await asyncio.Event().wait()  # a loop of the daemon never returns


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
                current = self.settings()
                async with asyncio.TaskGroup() as group:
                    working = group.create_task(_awaited(self.work(current)), name="sidecar")
                    while self.settings() == current:
                        await loaded.wait()
                        loaded.clear()
                    working.cancel()
        finally:
            handler.log.unlisten(on_events)


async def _awaited(work: Awaitable[None]) -> None:
    await work
