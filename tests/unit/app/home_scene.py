"""A home on the disk with its application, a clock that is moved by hand, and a daemon that answers if it is told to."""

import asyncio
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pulse_adapters.config.home import Home
from pulse_adapters.objects.files import FileObjects
from pulse_adapters.sqlite.events import SqliteEventLog
from pulse_adapters.sqlite.vitals import SqliteVitals
from pulse_core.app.context import HomeContext, LoadedSettings
from pulse_core.model.errors import NotAnswering, SettingsRefused
from pulse_core.model.event import Draft, Event
from pulse_core.model.home_status import FailedDaemon, HomeStatus, LockHolder
from pulse_core.model.json_types import Json
from pulse_core.model.moment import Moment
from pulse_core.model.payload import Payload, parse
from pulse_core.ports.readers import EventQuery
from pulse_core.settings.settings import Settings
from upulse_cli.wiring.home import home_context

SECOND = 1_000_000
START = 1_700_000_000 * SECOND
EXAMPLE: Mapping[str, Json] = {"x": 1}


class HandClock:
    """A clock that is moved by hand."""

    def __init__(self) -> None:
        self.second = 0

    def now(self) -> Moment:
        return Moment(START + self.second * SECOND, "boot", (self.second + 1) * SECOND)


class Daemon:
    """The daemon of a home, which answers if there are `answers`, admits everything, and holds the home if told so."""

    def __init__(self, scene: "Scene") -> None:
        self.scene = scene
        self.answers: HomeStatus | None = None
        self.holder: LockHolder | None = None
        self.lost: LockHolder | None = None
        self.failure: FailedDaemon | None = None

    def status(self) -> HomeStatus:
        if self.answers is None:
            raise NotAnswering("no daemon answers")
        return self.answers

    def append(self, draft: Mapping[str, Any]) -> tuple[Mapping[str, Any], bool]:
        self.status()
        payload = parse(draft["kind"], dict(draft["data"]))
        return self.scene.record(Draft(payload, draft["subject"], draft["cause"], draft["id"])), False

    def shown(self) -> Mapping[str, Any]:
        raise NotAnswering("no daemon")

    def follow(
        self, since: int, kinds: Collection[str] = (), *, brief: bool = False, patience: float = 10.0
    ) -> Iterator[Mapping[str, Any]]:
        self.status()
        yield from (event.spelled() for event in self.scene.rows(since) if not kinds or event.kind in kinds)

    def lock_holder(self) -> LockHolder | None:
        return self.holder

    def daemon_of_original(self, log: str) -> tuple[int, str] | None:
        return None

    def lost_holder(self, log: str) -> LockHolder | None:
        return self.lost if log else None

    def last_failure(self) -> FailedDaemon | None:
        return self.failure


class Scene:
    """A home and its application. faults: why its settings are refused."""

    def __init__(self, directory: Path) -> None:
        self.clock = HandClock()
        self.files = Home(directory / "home")
        self.files.create()
        self.daemon = Daemon(self)
        self.faults: tuple[str, ...] = ()
        self.settings = Settings()
        asyncio.run(self._append())

    @property
    def home(self) -> HomeContext:
        return replace(
            home_context(self.files),
            clock=self.clock,
            settings=self._settings,
            daemon=self.daemon,
        )

    def _settings(self) -> LoadedSettings:
        if self.faults:
            raise SettingsRefused(self.faults)
        return LoadedSettings(self.settings)

    def at(self, second: int, payload: Payload, subject: str = "", **more: Any) -> Mapping[str, Any]:
        self.clock.second = second
        return self.record(Draft(payload, subject, **more))

    def record(self, draft: Draft) -> Mapping[str, Any]:
        (event,) = self.append(draft)
        return event.spelled()

    def append(self, *drafts: Draft) -> Sequence[Event]:
        """Record several at once."""
        return asyncio.run(self._append(*drafts))

    async def _append(self, *drafts: Draft) -> Sequence[Event]:
        objects = FileObjects(self.files.objects)
        async with SqliteEventLog.open(self.files.events, clock=self.clock, objects=objects) as log:
            return await log.append(*drafts)

    def rows(self, since: int = 0) -> list[Event]:
        with self.home.events() as log:
            return list(log.events(EventQuery(since_seq=since)))

    async def sample(self, second: int, key: str = "k", data: Mapping[str, Json] = EXAMPLE) -> int:
        """Record a sample; its id."""
        async with SqliteVitals.open(self.files.vitals) as vitals:
            return vitals.sample(key, Moment(START + second * SECOND, "boot", second * SECOND), data).id
