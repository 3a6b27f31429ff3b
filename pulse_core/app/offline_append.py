"""Appending to a home whose daemon is down: what a person asks for is recorded all the same, under the home's lock."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from pulse_core.app.state import usable_settings
from pulse_core.model.event import Draft
from pulse_core.model.json_types import Json
from pulse_core.model.payload import Role, parse
from pulse_core.record.gate import Gate
from pulse_core.record.view import View, advance_state, restore_from_checkpoints

if TYPE_CHECKING:
    from pulse_core.app.context import HomeContext


def append_offline(home: "HomeContext", draft: Mapping[str, Any]) -> tuple[Mapping[str, Json], bool]:
    """Record it: the event as JSON values, and whether it was there before; raises HomeBusy if a daemon runs.

    draft: kind, subject, data, cause and id, as a daemon would be sent it.
    """
    payload = parse(draft["kind"], dict(draft["data"]))
    return asyncio.run(_appended(home, Draft(payload, draft["subject"], draft["cause"], draft["id"])))


async def _appended(home: "HomeContext", draft: Draft) -> tuple[Mapping[str, Json], bool]:
    stores = home.offline()
    with stores.lock():
        async with offline_gate(home) as gate:
            recorded = (await gate.append(Role.PERSON, stores.actor, [draft]))[0]
    return recorded.event.spelled(), recorded.existing


@asynccontextmanager
async def offline_gate(home: "HomeContext") -> AsyncIterator[Gate]:
    """The gate of a home whose daemon is down. The caller holds the home's lock."""
    stores, view, settings = home.offline(), View(), usable_settings(home)
    async with stores.log() as log:
        state = await restore_from_checkpoints(log, await stores.checkpoints.load())
        view.reset_to(await advance_state(log, state, log.head.seq))
        log.listen(view.on_events)
        yield Gate(log, view, lambda: settings, stores.executors(lambda: settings, view))
