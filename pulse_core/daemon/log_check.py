"""Verifies the whole log in the background shortly after the start, which must not wait for it."""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from pulse_core.model.errors import PulseError
from pulse_core.model.event import Draft
from pulse_core.model.kinds import LogVerified
from pulse_core.ports import EventLog

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
