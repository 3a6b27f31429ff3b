"""Somebody cuts the -shm of the log or of the vitals under the daemon: it lives, and all rows are there."""

import subprocess
import sys
from pathlib import Path

import pytest

from pulse_adapters.sqlite.verify import verify

CODE = """
import asyncio, os, sys
from pathlib import Path
from pulse_adapters.host.clock import SystemClock
from pulse_adapters.objects.files import FileObjects
from pulse_adapters.sqlite.events import SqliteEventLog
from pulse_adapters.sqlite.vitals import SqliteVitals
from pulse_core.model.event import Draft
from pulse_core.model.kinds import Paused

async def main(home, size):
    clock = SystemClock()
    log = SqliteEventLog.open(home / "events.db", clock=clock, objects=FileObjects(home / "objects"))
    async with log as log, SqliteVitals.open(home / "vitals.db") as vitals:
        for number in range(3):
            await log.append(Draft(Paused(why=f"{number}")))
            vitals.sample("key", clock.now(), {})
            await vitals.flush()
            os.truncate(home / "events.db-shm", size)
            os.truncate(home / "vitals.db-shm", size)
            await log.check()
        await log.append(Draft(Paused(why="last")))
        print(log.head.seq, len(await vitals.recent(0)), vitals.dropped)

asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2])))
"""


@pytest.mark.parametrize("size", [0, 4_096])
def test_a_shared_memory_that_is_cut_ends_nobody_and_loses_nothing(tmp_path: Path, size: int) -> None:
    argv = [sys.executable, "-c", CODE, str(tmp_path), str(size)]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (0, "4 3 0\n"), done.stderr
    assert verify(tmp_path / "events.db", tmp_path / "objects")[:2] == (4, "")
