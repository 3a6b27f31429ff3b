"""The stores of a home without a daemon, for a command that appends for itself."""

import os
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractContextManager, asynccontextmanager

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
from pulse_core.ports import Checkpoints, EventLog, Executor
from pulse_core.projections import State
from pulse_core.settings import Settings
from upulse_cli.wiring.executors import machine_executors

LOCK_WAIT = 2.0


class HomeOfflineStores:
    """`OfflineStores` on the files of a home."""

    def __init__(self, layout: HomeLayout) -> None:
        self._layout = layout
        self.actor = user_name(os.getuid())
        self.checkpoints: Checkpoints = SqliteCheckpoints(layout.state)

    def lock(self) -> AbstractContextManager[object]:
        return HomeLock(self._layout.lock, __version__, wait=LOCK_WAIT)

    @asynccontextmanager
    async def log(self) -> AsyncIterator[EventLog]:
        async with SqliteEventLog.open(
            self._layout.events,
            clock=SystemClock(),
            objects=FileObjects(self._layout.objects),
            reserve=self._layout.reserve,
            how=Opening(may_migrate=False),
        ) as log:
            await refuse_lost_rows(log, self.checkpoints)
            yield log

    def executors(
        self, settings: Callable[[], Settings], state: Callable[[], State]
    ) -> Mapping[str, Executor]:
        return machine_executors(self._layout, settings, state).executors
