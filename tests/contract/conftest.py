"""The stores, real and in memory, under one name each: a further adapter is one more parameter."""

from collections.abc import AsyncIterator
from itertools import count
from pathlib import Path

import pytest

from pulse_adapters.memory.log import MemoryLog
from pulse_adapters.memory.stores import MemoryCheckpoints, MemoryObjects, MemoryVitals
from pulse_adapters.objects.files import FileObjects
from pulse_adapters.sqlite.checkpoints import SqliteCheckpoints
from pulse_adapters.sqlite.events import SqliteEventLog
from pulse_adapters.sqlite.vitals import SqliteVitals
from pulse_core.model.moment import Moment
from pulse_core.ports.log import EventLog
from pulse_core.ports.stores import Checkpoints, Objects, Vitals


class SteppingClock:
    """A clock that goes on by a millisecond each time it is asked."""

    def __init__(self) -> None:
        self._steps = count(1)

    def now(self) -> Moment:
        step = next(self._steps)
        return Moment(1_700_000_000_000_000 + step * 1000, "boot-1", step * 1000)


@pytest.fixture(params=["files", "memory"])
def objects(request: pytest.FixtureRequest, tmp_path: Path) -> Objects:
    return FileObjects(tmp_path / "objects") if request.param == "files" else MemoryObjects()


@pytest.fixture(params=["sqlite", "memory"])
async def log(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[EventLog]:
    if request.param == "memory":
        yield MemoryLog(SteppingClock())
        return
    objects = FileObjects(tmp_path / "objects")
    async with SqliteEventLog.open(tmp_path / "events.db", clock=SteppingClock(), objects=objects) as log:
        yield log


@pytest.fixture(params=["sqlite", "memory"])
async def vitals(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Vitals]:
    if request.param == "memory":
        yield MemoryVitals()
        return
    async with SqliteVitals.open(tmp_path / "vitals.db") as vitals:
        yield vitals


@pytest.fixture(params=["sqlite", "memory"])
def checkpoints(request: pytest.FixtureRequest, tmp_path: Path) -> Checkpoints:
    return SqliteCheckpoints(tmp_path / "state.db") if request.param == "sqlite" else MemoryCheckpoints()
