"""A death amid a look at others that takes long: it is told and answered before that look is over, and once."""

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pulse_adapters.memory.executors import MemoryHost
from pulse_core.model.kinds import ProcessStartRequested, ProcessStopRequested
from pulse_core.model.vitals import Sample
from pulse_core.ports.host import ProcessId, ProcessObservation
from pulse_core.settings.processes import ProcessSettings
from pulse_core.watch.process_alive import OUTPUTS_S
from tests.simulation.world import World, simulate

SEARCH_S = 4.0
NAMES = ("first", "second", "third")
SETTINGS: dict[str, Any] = {
    "process": [{"name": name, "start": [name], "restart": {"max": 1000}} for name in (*NAMES, "absent")],
    "watch": {"process_interval": "10s"},
}


@dataclass
class SearchingHost(MemoryHost):
    """A machine on which a look at all takes long once `absent` is down, since that one is searched for.

    What it tells is as old as its begin. looks: when each of these began and ended, in seconds.
    """

    is_slow: bool = False
    search_s: float = SEARCH_S
    looks: list[tuple[float, float]] = field(default_factory=list)

    async def look(
        self, processes: Sequence[ProcessSettings], known: Mapping[str, ProcessId]
    ) -> Mapping[str, ProcessObservation]:
        seen, began = await super().look(processes, known), asyncio.get_running_loop().time()
        if self.is_slow and len(processes) > 1 and not seen["absent"].found:
            await asyncio.sleep(self.search_s)
            self.looks.append((began, asyncio.get_running_loop().time()))
        return seen


def arcs(world: World, name: str, since: float) -> list[tuple[str, float]]:
    """What was recorded of a process since then, and when, in seconds; effects by their action."""
    told: list[tuple[str, float]] = []
    for event in world.events("process-died", "process-up", "effect"):
        at = event.mono / 1e6
        if at >= since and name in (event.subject, event.subject.removeprefix("restart-process:")):
            told.append((json.loads(event.data).get("action", event.kind), at))
    return told


def samples(world: World, since: float) -> list[Sample]:
    """What was told of the processes since then, each time."""
    assert world.daemon is not None
    window = world.daemon.watch.windows["process-alive"]
    return [one for one in window.samples if one.moment.mono / 1e6 >= since]


async def begun(world: World) -> SearchingHost:
    """A daemon in the middle of a look at all that takes long, since one process was stopped."""
    host = world.host
    assert isinstance(host, SearchingHost)
    await world.start()
    await asyncio.sleep(200)
    host.is_slow = True
    await world.ask(ProcessStopRequested(), "absent")
    await asyncio.sleep(0.5)
    assert world.daemon is not None
    world.daemon.processes.nudge.set()
    await asyncio.sleep(0.5)
    assert not host.looks
    return host


def live(story: Any) -> World:
    return simulate(story, SETTINGS, host=SearchingHost())


def test_a_death_amid_a_long_look_at_all_is_answered_before_that_is_over() -> None:
    async def story(world: World) -> None:
        host, began = await begun(world), asyncio.get_running_loop().time()
        host.kill("first")
        await asyncio.sleep(0.1)
        assert not host.looks
        told = arcs(world, "first", began)
        assert [kind for kind, _ in told] == ["process-died", "restart-process", "process-up"]
        assert max(at for _, at in told) - began < 0.01
        assert "first" in host.processes
        await asyncio.sleep(20)
        assert [kind for kind, _ in arcs(world, "first", began)] == [
            "process-died",
            "restart-process",
            "process-up",
        ]

    live(story)


def test_deaths_one_after_the_other_amid_one_look_are_each_told_at_once_and_none_twice() -> None:
    async def story(world: World) -> None:
        host, began = await begun(world), asyncio.get_running_loop().time()
        for name in NAMES:
            host.kill(name)
            await asyncio.sleep(0.2)
        assert not host.looks
        await asyncio.sleep(20)
        for number, name in enumerate(NAMES):
            told = arcs(world, name, began)
            assert [kind for kind, _ in told] == ["process-died", "restart-process", "process-up"], name
            assert told[0][1] - began < 0.2 * number + 0.01
        assert host.started_twice == []

    live(story)


def test_who_dies_soon_after_a_restart_amid_a_long_look_at_all_is_answered_before_that_is_over() -> None:
    async def story(world: World) -> None:
        host = await begun(world)
        host.kill("first")
        await asyncio.sleep(0.5)
        began = asyncio.get_running_loop().time()
        host.kill("first")
        await asyncio.sleep(0.1)
        assert not host.looks
        ((told, at),) = arcs(world, "first", began)  # its restart waits, since it died so soon
        assert told == "process-died"
        assert at - began < 0.01
        await asyncio.sleep(20)
        arc = ["process-died", "restart-process", "process-up"]
        assert [kind for kind, _ in arcs(world, "first", began - 0.6)] == [*arc, *arc]
        assert host.started_twice == []

    live(story)


def test_what_a_look_saw_before_a_death_raises_nobody_from_the_dead() -> None:
    async def story(world: World) -> None:
        host = await begun(world)
        assert world.daemon is not None
        await world.ask(ProcessStopRequested(), "second")
        await asyncio.sleep(0.2)
        began = asyncio.get_running_loop().time()
        await asyncio.sleep(2 * SEARCH_S)
        assert arcs(world, "second", began) == []
        assert all(one.data["second"]["up"] is False for one in samples(world, began))
        assert {one["name"]: one["state"] for one in world.daemon.report()["processes"]}[
            "second"
        ] == "stopped"
        await world.ask(ProcessStartRequested(), "second")
        await asyncio.sleep(3 * SEARCH_S)
        assert [kind for kind, _ in arcs(world, "second", began)] == ["restart-process", "process-up"]
        assert len(host.looks) > 1

    live(story)


def test_a_death_is_answered_soon_though_no_look_at_all_ends_in_time() -> None:
    """As on a machine with so much to do that to search it takes longer than a look may."""

    async def story(world: World) -> None:
        host = await begun(world)
        host.search_s = 60.0
        await asyncio.sleep(1_000)
        for name in [*NAMES, *NAMES]:
            began = asyncio.get_running_loop().time()
            host.kill(name)
            await asyncio.sleep(4)
            arc = ["process-died", "restart-process", "process-up"]
            assert [kind for kind, _ in arcs(world, name, began)] == arc
            await asyncio.sleep(1_000)

    live(story)


def test_deaths_without_a_pause_keep_no_look_at_all_from_its_end() -> None:
    async def story(world: World) -> None:
        host = await begun(world)
        for _ in range(100):
            await asyncio.sleep(0.2)
            host.kill("first")
        assert len(host.looks) >= 3

    live(story)


LOG_S, CROWD = 0.1, [f"of-crowd-{number}" for number in range(150)]


@dataclass
class SilentLogsHost(MemoryHost):
    """A machine on which each log takes as long as a death waits for it, as where its file system does not answer."""

    async def last_lines(self, process: ProcessSettings, found: ProcessId, since: int) -> str:
        await asyncio.sleep(LOG_S)
        return ""


def test_those_that_die_together_wait_for_few_logs_that_do_not_answer() -> None:
    async def story(world: World) -> None:
        await world.start()
        await asyncio.sleep(200)
        began = asyncio.get_running_loop().time()
        for name in CROWD:
            world.host.kill(name)
        await asyncio.sleep(2)
        deaths = [event.mono / 1e6 for event in world.events("process-died") if event.mono / 1e6 >= began]
        assert len(deaths) == len(CROWD)
        assert max(deaths) - began < OUTPUTS_S + 2 * LOG_S

    simulate(
        story,
        {"process": [{"name": name, "start": [name]} for name in CROWD], "budget": {"actions_per_minute": 0}},
        host=SilentLogsHost(),
    )


def test_what_did_not_change_is_the_same_value_in_the_same_place_as_in_the_sample_before() -> None:
    async def story(world: World) -> None:
        await world.start()
        await asyncio.sleep(20)
        world.host.kill("second")
        await asyncio.sleep(20)
        window = samples(world, 15)
        assert {one.data["second"]["up"] for one in window} == {True, False}
        assert {(id(one.data["first"]), id(one.data["third"])) for one in window} == {
            (id(window[0].data["first"]), id(window[0].data["third"]))
        }
        assert {tuple(one.data) for one in window} == {(*NAMES, "absent")}

    live(story)
