"""Reading the whole log in the background, in a child of low priority: a start must not wait for it."""

import asyncio
import json
import logging
import sys

from pulse_adapters.config.home import Home
from pulse_adapters.host.spawn import Spawner
from pulse_core.model.errors import PulseError
from pulse_core.model.event import Draft
from pulse_core.model.kinds import LogVerified
from pulse_core.ports import EventLog

AFTER = 3.0
LONGEST = 6 * 3600.0
LOG = logging.getLogger("pulse.log")


async def deep_check(home: Home, log: EventLog, spawner: Spawner) -> None:
    """Verify the log once, a little after the start, and record what was found; then stay out of the way."""
    await asyncio.sleep(AFTER)
    argv = (
        "nice",
        "-n",
        "19",
        sys.executable,
        "-m",
        "upulse_cli",
        "verify",
        "--json",
        "--home",
        str(home.path),
    )
    try:
        outcome = await spawner.run(argv, cwd=None, env={}, timeout=LONGEST, marker="deep-check")
        found = json.loads(outcome.output)
        draft = LogVerified(rows=found["rows"], took_ms=found["took_ms"], fault=found["fault"])
        if draft.fault:
            LOG.critical("the event log is damaged: %s", draft.fault)
        await log.append(Draft(draft))
    except (PulseError, OSError, ValueError, KeyError) as error:
        LOG.error("the background check of the log failed: %s", error)
    await asyncio.Event().wait()
