"""Services that run beside the loops: checks of the log and of the engine's repository, and work that restarts when its
settings change."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

from pulse_core.daemon.request_handler import RequestHandler
from pulse_core.model.errors import PulseError
from pulse_core.model.event import Draft, Event
from pulse_core.model.kinds import ConditionCleared, ConditionRaised, LogVerified, SettingsLoaded
from pulse_core.model.moment import US_PER_SECOND
from pulse_core.ports.log import EventLog
from pulse_core.ports.loops import coalesced, wait_within
from pulse_core.projections.conditions import DAMAGED, ENGINE_MISSING
from pulse_core.projections.state import State

T = TypeVar("T")

DELAY, LOOK, THOROUGH = 3.0, 15.0, 3_600.0
"""Seconds from the start to the first check of the log, between two looks at the engine's repository, and between two
at all that is in it."""
LOG = logging.getLogger("pulse.log")
Failed = Callable[[str, str], None]
"""Reports a failure of somebody in words; of many different ones those are recorded that came first."""
Changed = Callable[[str, str], Awaitable[None]]
"""Records in words what somebody found to be changed, which comes seldom: whatever was reported before."""


class LogCheck(NamedTuple):
    """What a reading of the whole log found, and whether a person had accepted its damage."""

    found: LogVerified
    is_accepted: bool = False


Verify = Callable[[], Awaitable[LogCheck]]


async def check_log(
    log: EventLog,
    state: Callable[[], State],
    doubted: asyncio.Event,
    verify: Verify,
    failed: Failed,
    every_us: int,
) -> None:
    """Verify the log soon, and then at this interval (0: only once); record what is found, and raise its condition.

    doubted: set when the log is to be verified again at once.
    verify: reads the log in another process. It may raise PulseError, OSError, or ValueError or KeyError for an
    invalid answer.
    """
    await asyncio.sleep(DELAY)
    while True:
        doubted.clear()
        try:
            found, is_accepted = await verify()
            if found.fault:
                LOG.critical("the event log is damaged: %s", found.fault)
            await log.append(Draft(found))
            fault = "" if is_accepted else found.fault
            await settle(
                log, state(), DAMAGED, fault, "the whole log is what was written, or was accepted as it is"
            )
        except (PulseError, OSError, ValueError, KeyError) as error:
            failed("deep check", f"the log could not be verified: {error}")
        await (wait_within(doubted, every_us / US_PER_SECOND) if every_us else doubted.wait())
        if doubted.is_set():
            await asyncio.sleep(DELAY)  # whoever writes may not be done


async def watch_repository(
    log: EventLog, state: Callable[[], State], look: Callable[[str, bool], Awaitable[str]], failed: Failed
) -> None:
    """For ever, raise a condition while the repository of the engine in force is gone or broken.

    look: what is wrong with the repository of this commit, or empty; with True it reads all that is in it, as at the
    start, at each reload and while something is wrong. It may raise PulseError.
    """
    loop, asked, read_at, fault = asyncio.get_running_loop(), asyncio.Event(), float("-inf"), ""

    def on_events(events: Sequence[Event]) -> None:
        if any(event.kind == SettingsLoaded.kind for event in events):
            asked.set()

    log.listen(on_events)
    asked.set()
    try:
        while True:
            is_thorough = asked.is_set() or bool(fault) or loop.time() >= read_at + THOROUGH
            asked.clear()
            try:
                fault = await look(commit, is_thorough) if (commit := state().engine.commit) else ""
                read_at = loop.time() if is_thorough else read_at
                if fault and state().conditions[ENGINE_MISSING] is None:
                    failed("engine", fault)
                await settle(
                    log, state(), ENGINE_MISSING, fault, "the engine's repository is there and whole"
                )
            except (PulseError, OSError) as error:  # the next look tries it again
                LOG.warning("the engine's repository: %s", error)
            await wait_within(asked, coalesced(LOOK))
    finally:
        log.unlisten(on_events)


async def settle(log: EventLog, state: State, condition: str, fault: str, over: str) -> None:
    """Raise a condition, or clear it, unless that was done."""
    is_raised = state.conditions[condition] is not None
    if fault and not is_raised:
        await log.append(Draft(ConditionRaised(evidence=fault), condition))
    elif is_raised and not fault:
        await log.append(Draft(ConditionCleared(evidence=over), condition))


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
