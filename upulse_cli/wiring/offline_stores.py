"""The stores of a home without a daemon, for a command that appends for itself."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from pulse_adapters.host.clock import SystemClock
from pulse_adapters.ipc.lock import HomeLock
from pulse_adapters.ipc.peer import user_name
from pulse_adapters.objects.files import FileObjects
from pulse_adapters.sqlite.checkpoints import SqliteCheckpoints
from pulse_adapters.sqlite.damage import refuse_lost_rows
from pulse_adapters.sqlite.events import SqliteEventLog
from pulse_adapters.sqlite.opening import Opening
from pulse_core import __version__
from pulse_core.home import HomeLayout
from pulse_core.ports.log import EventLog
from pulse_core.ports.offline_stores import OfflineStores
from upulse_cli.wiring.executors import machine_executors

LOCK_WAIT = 2.0


def offline_stores(home: HomeLayout) -> OfflineStores:
    """The stores of this home."""
    checkpoints = SqliteCheckpoints(home.state)

    @asynccontextmanager
    async def open_log() -> AsyncIterator[EventLog]:
        async with SqliteEventLog.open(
            home.events,
            clock=SystemClock(),
            objects=FileObjects(home.objects),
            reserve=home.reserve,
            how=Opening(may_migrate=False),
        ) as log:
            await refuse_lost_rows(log, checkpoints)
            yield log

    return OfflineStores(
        user_name(os.getuid()),
        checkpoints,
        lambda: HomeLock(home.lock, __version__, wait=LOCK_WAIT),
        open_log,
        lambda settings, state: machine_executors(home, settings, state).executors,
    )
