"""The lock's file or its directory is replaced, or its disk fails, under the daemon: that ends nobody."""

import asyncio
import os
import time
from contextlib import suppress
from pathlib import Path

import pytest

from pulse_adapters.ipc.lock import HomeLock
from pulse_adapters.memory.clock import virtual_loop
from pulse_adapters.workers.file_threads import FileThreads
from pulse_core.model.errors import HomeBusy
from upulse_cli.wiring.daemon import keep_lock


def kept(lock: HomeLock) -> list[str]:
    """What is said within a minute; raises what ends the daemon."""
    said = list[str]()
    at_once = FileThreads(is_needed=lambda: False)  # what another test has mounted is none of this one's
    with asyncio.Runner(loop_factory=virtual_loop) as runner, suppress(TimeoutError):
        runner.run(
            asyncio.wait_for(keep_lock(lock, at_once, lambda *words: said.append(": ".join(words))), 60)
        )
    return said


@pytest.mark.parametrize("name", ["run", "lock"])
def test_what_lies_in_the_place_of_the_lock_is_said_and_ends_no_daemon(tmp_path: Path, name: str) -> None:
    (run := tmp_path / "run").mkdir()
    with HomeLock(run / "lock", "1") as lock:
        place = run if name == "run" else run / "lock"
        place.rename(tmp_path / "away")
        os.mkfifo(place)
        assert "lock: its file is not as it should be" in kept(lock)[0]
        place.unlink()
        assert kept(lock) == []
        with pytest.raises(HomeBusy):
            HomeLock(run / "lock", "2").__enter__()


def test_who_finds_another_one_in_its_place_ends(tmp_path: Path) -> None:
    (run := tmp_path / "run").mkdir()
    with HomeLock(run / "lock", "1") as lock:
        (run / "lock").unlink()
        with HomeLock(run / "lock", "2"), pytest.raises(HomeBusy):
            kept(lock)


def test_a_command_that_holds_it_for_a_moment_is_waited_for_and_the_loop_goes_on(tmp_path: Path) -> None:
    (run := tmp_path / "run").mkdir()
    with HomeLock(run / "lock", "1", wait=60.0) as lock:
        (run / "lock").unlink()
        with HomeLock(run / "lock", "2"):
            began = time.monotonic()
            lock.keep()  # whoever waited here would do so for a minute
            assert time.monotonic() - began < 30
        lock.keep()
        with pytest.raises(HomeBusy):
            HomeLock(run / "lock", "3").__enter__()
