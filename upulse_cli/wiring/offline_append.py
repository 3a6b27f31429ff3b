"""Appending to a home whose daemon is down: what a person asks for is recorded all the same, under the home's lock."""

import asyncio
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from pulse_adapters.host.clock import SystemClock
from pulse_adapters.ipc.lock import HomeLock
from pulse_adapters.ipc.peer import user_name
from pulse_adapters.objects.files import FileObjects
from pulse_adapters.sqlite.checkpoints import SqliteCheckpoints
from pulse_adapters.sqlite.damage import refuse_lost_rows
from pulse_adapters.sqlite.events import SqliteEventLog
from pulse_adapters.sqlite.opening import Opening
from pulse_core import __version__
from pulse_core.app.context import HomeContext
from pulse_core.app.state import usable_settings
from pulse_core.model.event import Draft
from pulse_core.model.json_types import Json
from pulse_core.model.payload import Role, parse
from pulse_core.record.gate import Gate
from pulse_core.record.view import View, advance_state, restore_from_checkpoints
from upulse_cli.wiring.executors import machine_executors

LOCK_WAIT = 2.0


def append_offline(home: HomeContext, draft: Mapping[str, Any]) -> tuple[Mapping[str, Json], bool]:
    """Implements `HomeContext.append_offline`."""
    payload = parse(draft["kind"], dict(draft["data"]))
    wanted = Draft(payload, draft["subject"], draft["cause"], draft["id"])

    async def append() -> tuple[Mapping[str, Json], bool]:
        with HomeLock(home.layout.lock, __version__, wait=LOCK_WAIT):
            async with offline_gate(home) as gate:
                (recorded,) = await gate.append(Role.PERSON, user_name(os.getuid()), [wanted])
        return recorded.event.spelled(), recorded.existing

    return asyncio.run(append())


@asynccontextmanager
async def offline_gate(home: HomeContext) -> AsyncIterator[Gate]:
    """The gate of a home whose daemon is down; nothing is migrated. The caller holds the home's lock."""
    layout, view, settings = home.layout, View(), usable_settings(home)
    checkpoints, objects = SqliteCheckpoints(layout.state), FileObjects(layout.objects)
    how = Opening(may_migrate=False)
    async with SqliteEventLog.open(
        layout.events, clock=SystemClock(), objects=objects, reserve=layout.reserve, how=how
    ) as log:
        await refuse_lost_rows(log, checkpoints)
        state = await restore_from_checkpoints(log, await checkpoints.load())
        view.reset_to(await advance_state(log, state, log.head.seq))
        log.listen(view.on_events)
        yield Gate(log, view, lambda: settings, machine_executors(layout, lambda: settings, view).executors)
