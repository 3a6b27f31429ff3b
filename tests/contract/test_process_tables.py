"""What every process table promises: it finds what lives, knows what it held, and tells of each death once."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from pulse_adapters.host.process_table import LinuxProcessTable
from pulse_adapters.host.spawner import Spawner
from pulse_adapters.memory.executors import MemoryHost
from pulse_adapters.workers.proc import is_alive
from pulse_core.ports.host import ProcessId, ProcessTable
from pulse_core.settings.settings import Settings

GATEWAY = Settings.model_validate({"process": [{"name": "gateway", "start": ["sleep", "1000"]}]}).process


@dataclass
class Machine:
    """A table, and how to start and kill the process that it looks at."""

    table: ProcessTable
    start: Callable[[], Awaitable[ProcessId]]
    kill: Callable[[ProcessId], None]


@pytest.fixture(params=["memory", "linux"])
async def machine(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Machine]:
    if request.param == "memory":
        host = MemoryHost()

        async def start_gateway() -> ProcessId:
            return host.start("gateway")

        yield Machine(host, start_gateway, lambda one: host.kill("gateway"))
        return
    spawner, begun = Spawner(), list[ProcessId]()
    table = LinuxProcessTable(spawner)

    async def start() -> ProcessId:
        begun.append(await spawner.start(["sleep", "1000"], output=tmp_path / "it.log"))
        return begun[-1]

    def kill(one: ProcessId) -> None:
        os.kill(one.pid, signal.SIGKILL)

    yield Machine(table, start, kill)
    for one in begun:
        if is_alive(one):
            kill(one)
    table.close()
    spawner.close()


async def told(deaths: list[ProcessId], number: int) -> list[ProcessId]:
    """The deaths, once there are so many, and a moment later."""
    async with asyncio.timeout(60):
        while len(deaths) < number:
            await asyncio.sleep(0.005)
    await asyncio.sleep(0.02)
    return deaths


async def test_what_is_known_and_lives_is_found(machine: Machine) -> None:
    found = await machine.start()
    sight = (await machine.table.look(GATEWAY, {"gateway": found}))["gateway"]
    assert (sight.found, sight.known, sight.answering) == ((found,), True, None)


async def test_what_was_never_started_is_not_found(machine: Machine) -> None:
    sight = (await machine.table.look(GATEWAY, {}))["gateway"]
    assert (sight.found, sight.known, sight.intended, sight.busy) == ((), False, False, False)


async def test_a_death_is_told_once_and_the_dead_one_is_not_found(machine: Machine) -> None:
    found, deaths = await machine.start(), list[ProcessId]()
    machine.table.hold([found], deaths.append)
    machine.kill(found)
    assert await told(deaths, 1) == [found]
    sight = (await machine.table.look(GATEWAY, {"gateway": found}))["gateway"]
    assert (sight.found, sight.known) == ((), False)


async def test_who_is_dead_when_it_is_held_is_told_of_too(machine: Machine) -> None:
    found, deaths = await machine.start(), list[ProcessId]()
    machine.kill(found)
    await asyncio.sleep(0.05)
    machine.table.hold([found], deaths.append)
    assert await told(deaths, 1) == [found]


async def test_what_is_not_held_any_more_is_not_told_of(machine: Machine) -> None:
    found, deaths = await machine.start(), list[ProcessId]()
    machine.table.hold([found], deaths.append)
    machine.table.hold([], deaths.append)
    machine.kill(found)
    await asyncio.sleep(0.1)
    assert deaths == []
