"""A real death amid a search of the machine for another process: it is told and answered before that search is over."""

import asyncio
import os
import signal
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from pulse_adapters.config.home import Home
from pulse_adapters.host import process_table
from pulse_adapters.host.process_search import find_matching
from pulse_adapters.host.process_table import LinuxProcessTable
from pulse_adapters.host.spawner import Spawner
from pulse_adapters.sqlite.open_log import Opening
from pulse_core.daemon import Daemon
from pulse_core.model.event import Event
from pulse_core.settings.processes import ProcessSettings
from pulse_core.watch.process_alive import ProcessAlive
from tests.integration.host.host_scene import until
from upulse_cli.wiring.daemon import real_daemon

CONFIG = """
[[process]]
name = "victim"
start = ["sleep", "9041"]

[[process]]
name = "absent"
match = "^there is no such command line$"
command = ["true"]
restart = { max = 0 }
"""


class HeldSearch:
    """The search for command lines, which can be held up."""

    def __init__(self) -> None:
        self.is_held, self.waiting, self.free = False, 0, asyncio.Event()

    async def __call__(self, *what: object) -> object:
        if self.is_held:
            self.waiting += 1
            await self.free.wait()
            self.waiting -= 1
        return await find_matching(*what)  # type: ignore[arg-type]


async def recorded(daemon: Daemon) -> list[Event]:
    return [event async for events in daemon.parts.log.since(0) for event in events]


async def test_a_death_is_answered_amid_a_search_that_is_not_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process_table, "find_matching", search := HeldSearch())
    home, stop = Home(tmp_path / "home"), asyncio.Event()
    home.create()
    home.config.write_text(CONFIG)
    async with real_daemon(home, Opening()) as daemon:
        running = asyncio.create_task(daemon.run(stop))

        def pid() -> int | None:
            return daemon.parts.view().processes["victim"].pid

        await until(lambda: daemon.parts.view().processes["victim"].up)
        search.is_held, first = True, pid()
        daemon.processes.nudge.set()
        await until(lambda: search.waiting)
        assert first is not None
        os.kill(first, signal.SIGKILL)
        await until(lambda: pid() != first, seconds=ProcessAlive.timeout / 2)  # its restart was acked
        assert search.waiting
        search.is_held = False
        search.free.set()
        await until(lambda: daemon.parts.view.recorded().processes["victim"].up)
        told = Counter(
            (event.kind, event.subject) for event in await recorded(daemon) if event.subject == "victim"
        )
        stop.set()
        await running
    assert told == {("process-died", "victim"): 2, ("process-up", "victim"): 2}  # it was not there at first


@pytest.fixture
def guarded() -> Callable[..., ProcessSettings]:
    return lambda name, **more: ProcessSettings.model_validate({"name": name, "command": ["true"], **more})


async def test_what_one_look_has_found_another_one_that_begins_meanwhile_does_not_find(
    tmp_path: Path,
    spawner: Spawner,
    log: Path,
    mark: str,
    guarded: Callable[..., ProcessSettings],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    table, begun, free = LinuxProcessTable(spawner), asyncio.Event(), asyncio.Event()

    async def held(*what: object) -> None:
        begun.set()
        await free.wait()

    monkeypatch.setattr(table, "_adopt_unrecorded", held)
    found = await spawner.start(["sleep", "9043"], output=log)
    one, other = (guarded(name, match="^sleep 9043$") for name in ("one", "other"))
    slow = ProcessSettings(name="slow", start=("sleep", "9044"))
    first = asyncio.create_task(table.look([one, slow], {}))
    await begun.wait()
    seen = await table.look([other], {})
    free.set()
    assert ((await first)["one"].found, seen["other"].found) == ((found,), ())
    assert (await table.look([other], {}))["other"].found == (found,)
