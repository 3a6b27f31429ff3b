"""Real processes for real tests; whatever a test leaves running carries its mark and is killed after it."""

import os
import signal
import time
import uuid
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from pulse_adapters.host.process_table import LinuxProcessTable
from pulse_adapters.host.spawner import Spawner
from pulse_adapters.workers.proc import pids, read_proc_file


@pytest.fixture(autouse=True)
def mark(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    name = f"PULSE_TEST_{uuid.uuid4().hex}"
    monkeypatch.setenv(name, "1")
    yield name
    end_marked(name)
    time.sleep(0.02)  # what was just being executed had no environment to be known by
    end_marked(name)


def end_marked(name: str) -> None:
    for pid in pids():
        if pid != os.getpid() and name.encode() in (read_proc_file(f"/proc/{pid}/environ") or b""):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


@pytest.fixture
async def spawner(mark: str) -> AsyncIterator[Spawner]:
    spawner = Spawner()
    yield spawner
    spawner.close()


@pytest.fixture
async def table(spawner: Spawner) -> AsyncIterator[LinuxProcessTable]:
    table = LinuxProcessTable(spawner)
    yield table
    table.close()


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "logs" / "it.log"
