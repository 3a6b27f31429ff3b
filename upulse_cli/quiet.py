"""The gate of a home whose daemon is down: what a person asks for is recorded all the same, under the home's lock."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from pulse_adapters.config.file import load_to_start
from pulse_adapters.config.home import Home
from pulse_adapters.host.clock import SystemClock
from pulse_adapters.ipc.lock import HomeLock
from pulse_adapters.objects.files import FileObjects
from pulse_adapters.sqlite.checkpoints import SqliteCheckpoints
from pulse_adapters.sqlite.events import SqliteEventLog
from pulse_adapters.sqlite.opening import Opening
from pulse_core import __version__
from pulse_core.daemon import CurrentSettings
from pulse_core.model.errors import SettingsRefused
from pulse_core.model.event import Draft
from pulse_core.model.payload import Role
from pulse_core.record import Gate, RecordedDraft
from pulse_core.record.view import View, advanced, restored
from pulse_core.settings import Settings
from upulse_cli.answering import named
from upulse_cli.damage import refuse_lost_rows
from upulse_cli.wiring.acting import hands


@asynccontextmanager
async def quiet_gate(home: Home) -> AsyncIterator[Gate]:
    """The gate of a home whose daemon is down. The caller holds the home's lock."""
    view = View()
    current_settings = CurrentSettings(lambda: settings_if_sound(home))
    opened = SqliteEventLog.open(
        home.events,
        clock=SystemClock(),
        objects=FileObjects(home.objects),
        reserve=home.reserve,
        how=Opening(may_migrate=False),
    )
    async with opened as log:
        await refuse_lost_rows(log, SqliteCheckpoints(home.state))
        state = await restored(log, await SqliteCheckpoints(home.state).load())
        view.stand_at(await advanced(log, state, log.head.seq))
        log.listen(view.hear)
        yield Gate(log, view, current_settings, hands(home, current_settings, view).executors)


def settings_if_sound(home: Home) -> Settings:
    """The settings, or the defaults where they are refused: a pause must not wait until they are mended."""
    try:
        return load_to_start(home.config)[0]
    except SettingsRefused:
        return Settings()


async def append_quietly(home: Home, draft: Draft) -> RecordedDraft:
    """Record what a person asks for while no daemon runs; raises HomeBusy if one does."""
    with HomeLock(home.lock, __version__, wait=2.0):
        async with quiet_gate(home) as gate:
            return (await gate.append(Role.PERSON, named(os.getuid()), [draft]))[0]
