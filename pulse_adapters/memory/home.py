"""A home in memory, for tests of the application: its stores, and a daemon that answers or does not."""

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Mapping
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path

from pulse_adapters.memory.log import MemoryLog
from pulse_adapters.memory.readers import MemoryEventReader, MemoryObjectReader, MemoryVitalsReader
from pulse_adapters.memory.stores import MemoryCheckpoints, MemoryObjects, MemoryVitals
from pulse_core.app.context import HomeContext, LoadedSettings
from pulse_core.home import HomeLayout
from pulse_core.model.errors import HomeBusy, NotAnswering, SettingsRefused
from pulse_core.model.event import Draft, Event
from pulse_core.model.home_status import HomeStatus
from pulse_core.model.json_types import Json
from pulse_core.model.lock_holder import LockHolder
from pulse_core.model.payload import parse
from pulse_core.ports import Clock, EventLog, Executor
from pulse_core.projections import State
from pulse_core.settings import Settings


@dataclass
class MemoryHome:
    """What a home holds. answers: what its daemon says of its status; without it, it does not answer.

    holder: who holds the lock; faults: why the settings are refused.
    """

    clock: Clock
    answers: HomeStatus | None = None
    holder: LockHolder | None = None
    settings: Settings = field(default_factory=Settings)
    faults: tuple[str, ...] = ()
    executors: Mapping[str, Executor] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.log = MemoryLog(self.clock)
        self.vitals, self.objects, self.checkpoints = MemoryVitals(), MemoryObjects(), MemoryCheckpoints()
        self._made = 0

    def context(self) -> HomeContext:
        """The home as the application takes it."""
        return HomeContext(
            layout=HomeLayout(Path("/home/of/nobody")),
            clock=self.clock,
            settings=self._settings,
            events=lambda: MemoryEventReader(self.log),
            vitals=lambda: MemoryVitalsReader(self.vitals),
            checkpoints=lambda: self.checkpoints.kept,
            objects=lambda: MemoryObjectReader(self.objects),
            daemon=MemoryDaemonClient(self),
            new_id=self._new_id,
            offline=lambda: MemoryOfflineStores(self),
        )

    def _settings(self) -> LoadedSettings:
        if self.faults:
            raise SettingsRefused(self.faults)
        return LoadedSettings(self.settings)

    def _new_id(self) -> str:
        self._made += 1
        return f"01900000-0000-7000-8000-{self._made:012}"

    def record(self, draft: Draft) -> Mapping[str, Json]:
        """Record an event, as the daemon would, where no loop runs; as JSON values."""
        return asyncio.run(self._recorded(draft)).spelled()

    async def _recorded(self, draft: Draft) -> Event:
        return (await self.log.append(draft))[0]


class MemoryDaemonClient:
    """Implements `pulse_core.ports.daemon_client.DaemonClient` for a `MemoryHome`; it admits everything."""

    def __init__(self, home: MemoryHome) -> None:
        self._home = home

    def status(self) -> HomeStatus:
        if self._home.answers is None:
            raise NotAnswering("no daemon answers")
        return self._home.answers

    def append(self, draft: Mapping[str, Json]) -> tuple[Mapping[str, Json], bool]:
        self.status()
        known = {event.id for event in self._home.log.events}
        payload = parse(draft["kind"], dict(draft["data"]))
        wanted = Draft(payload, draft["subject"], draft["cause"], draft["id"], "somebody")
        return self._home.record(wanted), draft["id"] in known

    def follow(
        self, since: int, kinds: Collection[str] = (), *, brief: bool = False, patience: float = 10.0
    ) -> Iterator[Mapping[str, Json]]:
        self.status()
        for event in self._home.log.events[since:]:
            if not kinds or event.kind in kinds:
                yield event.spelled()

    def lock_holder(self) -> LockHolder | None:
        return self._home.holder


class MemoryOfflineStores:
    """Implements `pulse_core.ports.offline_stores.OfflineStores` for a `MemoryHome`."""

    actor = "somebody"

    def __init__(self, home: MemoryHome) -> None:
        self._home = home
        self.checkpoints = home.checkpoints

    def lock(self) -> AbstractContextManager[object]:
        if self._home.holder:
            raise HomeBusy("/home/of/nobody", self._home.holder.pid)
        return nullcontext()

    @asynccontextmanager
    async def log(self) -> AsyncIterator[EventLog]:
        yield self._home.log

    def executors(
        self, settings: Callable[[], Settings], state: Callable[[], State]
    ) -> Mapping[str, Executor]:
        return self._home.executors
