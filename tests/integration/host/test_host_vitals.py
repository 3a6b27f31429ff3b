"""The machine's real vital signs."""

import asyncio
import os
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from pulse_adapters.host.disks import Disks
from pulse_adapters.host.memory_consumers import MemoryConsumers
from pulse_adapters.host.spawner import Spawner
from pulse_adapters.host.system_watcher import PsiTriggers, SystemResource
from pulse_adapters.host.usage_watcher import STEP, ProcessUsageWatcher
from pulse_adapters.workers.proc import read_stat
from pulse_core.model.moment import Moment
from pulse_core.model.vitals import Sample, Window
from pulse_core.ports.host import ProcessId
from pulse_core.projections.state import State
from pulse_core.settings.settings import Settings
from tests.integration.host.host_scene import script, until

SETTINGS = Settings.model_validate({"watch": {"system_interval": "2s", "disks": ["/", "/no/such/path"]}})


@pytest.fixture
async def watcher(spawner: Spawner) -> AsyncIterator[SystemResource]:
    consumers = MemoryConsumers(lambda: SETTINGS, dict, frozenset)
    async with SystemResource(lambda: SETTINGS, lambda: 1.5, spawner, consumers, State, Window) as watcher:
        yield watcher


async def test_a_sample_is_sane(watcher: SystemResource) -> None:
    burnt = time.process_time() + 0.05
    while time.process_time() < burnt:
        pass
    data = (await watcher.collect()).data
    for share in ("cpu", "cpu_max", "memory", "swap"):
        assert 0 <= data[share] <= 1
    assert 0 < data["cpu_max"] >= data["cpu"]
    assert 0 < data["memory_available"] < data["memory_total"]
    assert data["self_cpu"] > 0
    assert 5_000_000 < data["self_rss"] < data["memory_total"]
    assert data["load1"] >= 0
    assert data["loop_late_ms"] == 1.5


async def test_disks_tell_their_shares_or_their_error(watcher: SystemResource) -> None:
    disks = (await watcher.collect()).data["disks"]
    said = os.statvfs("/")
    assert disks["/"]["used"] == pytest.approx(1 - said.f_bfree / said.f_blocks, abs=0.5)
    assert disks["/"]["free"] == pytest.approx(said.f_bavail * said.f_frsize, rel=0.05)
    assert 0 <= disks["/"]["inodes"] <= 1
    assert "No such file" in disks["/no/such/path"]["error"]


@pytest.mark.skipif(not os.path.exists("/proc/pressure"), reason="this kernel has no pressure information")
async def test_pressure_is_told_as_shares(watcher: SystemResource) -> None:
    psi = (await watcher.collect()).data["psi"]
    assert set(psi) == {"cpu", "memory", "io"}
    assert all(0 <= share <= 1 for resource in psi.values() for share in resource.values())
    assert {"some", "full"} <= set(psi["memory"])


async def test_the_interval_is_the_setting(watcher: SystemResource) -> None:
    assert watcher.interval == 2.0


async def test_only_a_sample_taken_for_a_trigger_wakes(watcher: SystemResource) -> None:
    quiet = Sample(1, watcher.key, Moment(1, "b", 1), {"cpu": 1.0})
    loud = Sample(2, watcher.key, Moment(2, "b", 2), {"trigger": "memory"})
    assert not watcher.should_wake(Window())
    assert watcher.should_wake(Window((quiet, loud)))
    assert not watcher.should_wake(Window((loud, quiet)))


@pytest.mark.skipif(not os.path.exists("/proc/pressure"), reason="this kernel has no pressure information")
async def test_pressure_is_told_at_once_and_not_more_than_once_in_two_seconds(
    spawner: Spawner, log: Path
) -> None:
    told: list[tuple[float, str]] = []
    triggers = PsiTriggers(lambda name: told.append((time.monotonic(), name)), {"cpu": "some 20000 2000000"})
    assert triggers.open() == ("cpu",)
    one = str(
        min(os.sched_getaffinity(0))
    )  # two that contend for one processor leave the others to other tests
    for _ in range(2):
        await spawner.start(["taskset", "--cpu-list", one, "sh", "-c", "while :; do :; done"], output=log)
    await until(lambda: len(told) >= 2, seconds=60)
    triggers.close()
    assert told[0][1] == "cpu"
    assert told[1][0] - told[0][0] >= 2


@pytest.mark.wall_clock
async def test_a_distant_disk_is_asked_in_a_child_that_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mark: str
) -> None:
    """/proc stands for a file server: its type is not one of the local ones."""
    script(
        tmp_path / "bin" / "stat",
        '#!/bin/sh\ncase $4 in /proc/1*) sleep 1000;; esac; exec /usr/bin/stat "$@"',
    )
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    link = tmp_path / "link"
    link.symlink_to("/proc")
    spawner = Spawner()
    disks = Disks(spawner)
    began = time.monotonic()
    said, beat = await asyncio.gather(disks.sample(["/", str(link), "/proc/1"]), heartbeat(1.0))
    spawner.close()
    assert said["/"]["free"] > 0
    assert said[str(link)] == {"used": 0.0, "free": 0}
    assert said["/proc/1"] == {"error": "did not answer within 2 s"}
    assert time.monotonic() - began < 4
    assert beat < 0.5


async def heartbeat(seconds: float) -> float:
    """The longest time that the loop was late."""
    worst, end = 0.0, time.monotonic() + seconds
    while (before := time.monotonic()) < end:
        await asyncio.sleep(0.01)
        worst = max(worst, time.monotonic() - before - 0.01)
    return worst


async def no_members(name: str) -> tuple[ProcessId, ...]:
    return ()


async def test_the_loop_turns_while_many_small_trees_are_measured() -> None:
    names, turns = [f"p{number}" for number in range(200)], list[int]()
    settings = Settings.model_validate({"process": [{"name": name, "start": [name]} for name in names]})
    seen = read_stat(os.getpid())
    assert seen is not None
    known = dict.fromkeys(names, seen.found)
    usage = ProcessUsageWatcher(lambda: settings, lambda: known, no_members, State, Window)
    measuring = asyncio.create_task(usage.collect())
    while not measuring.done():
        turns.append(1)
        await asyncio.sleep(0)
    assert measuring.result().data.keys() == set(names)
    assert len(turns) >= len(names) // STEP
