"""A log in a home of its own, and a child that writes one until it is killed."""

import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from pulse_adapters.objects.files import FileObjects
from pulse_adapters.sqlite.events import SqliteEventLog
from pulse_core.model.moment import Moment

WRITER = Path(__file__).parent / "writer.py"
Open = Callable[..., AbstractAsyncContextManager[SqliteEventLog]]


class SteppingClock:
    """A clock that goes on by a millisecond each time it is asked."""

    def __init__(self) -> None:
        self._steps = count(1)

    def now(self) -> Moment:
        step = next(self._steps)
        return Moment(1_700_000_000_000_000 + step * 1000, "boot-1", step * 1000)


@pytest.fixture
def open_log(tmp_path: Path) -> Open:
    """Opens the log of the test's home; what is given goes to `SqliteEventLog.open`."""

    @asynccontextmanager
    async def opened(home: Path = tmp_path, **how: Any) -> AsyncIterator[SqliteEventLog]:
        objects = FileObjects(home / "objects")
        async with SqliteEventLog.open(
            home / "events.db", clock=SteppingClock(), objects=objects, **how
        ) as log:
            yield log

    return opened


@pytest.fixture
def killed_writer() -> Callable[[Path, int], list[str]]:
    """Lets a child append to a home until so many events are acknowledged, kills it, returns their ids."""

    def write(home: Path, acknowledged: int) -> list[str]:
        child = subprocess.Popen([sys.executable, str(WRITER), str(home)], stdout=subprocess.PIPE, text=True)
        assert child.stdout
        with child.stdout as output:
            ids = [output.readline().strip() for _ in range(acknowledged)]
            os.kill(child.pid, signal.SIGKILL)
            ids += [line.strip() for line in output if line.endswith("\n")]
        assert child.wait(timeout=60) == -signal.SIGKILL
        assert all(ids)
        return ids

    return write
