"""Stops that fail or do not help, as the whole daemon lives them, in virtual time."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from itertools import pairwise
from typing import Any

import pytest

from pulse_adapters.memory.executors import MemoryExecutor, MemoryStop
from pulse_adapters.memory.stores import MemoryCheckpoints
from pulse_core.model.errors import PulseError
from pulse_core.model.event import Event
from pulse_core.model.kinds import (
    Paused,
    ProcessRestartRequested,
    ProcessStartRequested,
    ProcessStopRequested,
    Resumed,
)
from pulse_core.ports.executor import Policy, Safety, Unsure
from pulse_core.ports.host import ProcessId
from pulse_core.rules.survival.process_watchdog import STOP_TRIES
from tests.long_form import sampled
from tests.simulation.world import RARE_SCANS, World, simulate

ONE = {"process": [{"name": "gateway", "start": ["gateway"]}]}
HOUR_US = 3_600_000_000
DAY_US = 24 * HOUR_US
Deed = Callable[[Event], Awaitable[None]]


def stops(world: World) -> list[Event]:
    return world.events("effect", subject="stop-process:gateway")


def notices(world: World) -> list[Any]:
    return [json.loads(event.data) for event in world.events("effect", subject="notify:stop:gateway")]


def process(world: World) -> dict[str, Any]:
    assert world.daemon is not None
    return dict(world.daemon.report()["processes"][0])


async def up(world: World) -> None:
    await world.start()
    await asyncio.sleep(10)
    assert process(world)["state"] == "up"


def failing(times: int, error: type[Exception] = PulseError) -> Deed:
    left = iter(range(times))

    async def deed(_event: Event) -> None:
        if next(left, None) is not None:
            raise error("no permission")

    return deed


def by(world: World, deed: Deed) -> None:
    """Stops that do this first; as the real ones, they leave trying again to the rule."""
    world.executors["stop-process"] = MemoryStop(
        host=world.host, deed=deed, rule=Policy(Safety.IDEMPOTENT, timeout=100)
    )


def in_vain(world: World) -> None:
    """Stops are acked and end nothing."""
    world.executors["stop-process"] = MemoryExecutor("stop-process")


@pytest.mark.parametrize("error", sampled([PulseError, Unsure], 3), ids=sampled(["failed", "unknown"], 3))
@pytest.mark.parametrize("times", range(1, STOP_TRIES))
def test_a_stop_that_fails_is_tried_again_until_it_works(times: int, error: type[Exception]) -> None:
    async def story(world: World) -> None:
        by(world, failing(times, error))
        await up(world)
        await world.ask(ProcessStopRequested(expires_us=DAY_US), "gateway")
        await asyncio.sleep(9)
        assert process(world)["state"] == "stopping"
        assert "no permission" in process(world)["why"]
        await asyncio.sleep(600)
        assert (process(world)["state"], world.host.processes) == ("stopped", {})

    world = simulate(story, ONE)
    assert len(stops(world)) == times + 1
    assert notices(world) == []


def test_stops_grow_apart_and_end_with_a_notice_and_reminders() -> None:
    async def story(world: World) -> None:
        by(world, failing(1_000))
        await up(world)
        await world.ask(ProcessStopRequested(expires_us=DAY_US), "gateway")
        await asyncio.sleep(5 * 3600)
        assert process(world)["state"] == "stopping"
        assert "no permission" in process(world)["why"]

    world = simulate(story, {**ONE, **RARE_SCANS, "notify": {"remind": "1h"}})
    gaps = [later.mono - earlier.mono for earlier, later in pairwise(stops(world))]
    assert [round(gap / 1e6) for gap in gaps] == [10, 20, 40, 80]
    titles = [notice["params"]["title"] for notice in notices(world)]
    assert titles == ["gateway does not stay down", *["still: gateway does not stay down"] * 4]
    assert "no permission" in notices(world)[0]["params"]["text"]
    assert len(world.host.starts) == 1


def test_a_stop_that_ends_nothing_is_tried_again_and_told() -> None:
    async def story(world: World) -> None:
        in_vain(world)
        await up(world)
        await world.ask(ProcessStopRequested(expires_us=DAY_US), "gateway")
        await asyncio.sleep(3600)
        assert process(world)["state"] == "stopping"
        assert process(world)["pid"] is not None

    world = simulate(story, ONE)
    assert len(stops(world)) == STOP_TRIES
    assert len(notices(world)) == 1


def test_a_stop_in_time_ends_the_trying() -> None:
    async def story(world: World) -> None:
        in_vain(world)
        await up(world)
        await world.ask(ProcessStopRequested(expires_us=25_000_000), "gateway")
        await asyncio.sleep(3600)
        assert process(world)["state"] == "up"

    world = simulate(story, ONE)
    assert len(stops(world)) == 2
    assert notices(world) == []


def test_a_commanded_start_ends_the_trying() -> None:
    async def story(world: World) -> None:
        in_vain(world)
        await up(world)
        await world.ask(ProcessStopRequested(expires_us=DAY_US), "gateway")
        await asyncio.sleep(15)
        await world.ask(ProcessStartRequested(), "gateway")
        await asyncio.sleep(3600)
        assert process(world)["state"] == "up"

    world = simulate(story, ONE)
    assert len(stops(world)) == 2


def test_being_asked_again_begins_anew() -> None:
    async def story(world: World) -> None:
        in_vain(world)
        await up(world)
        for _ in range(2):
            await world.ask(ProcessStopRequested(expires_us=DAY_US), "gateway")
            await asyncio.sleep(3600)

    world = simulate(story, ONE)
    assert len(stops(world)) == 2 * STOP_TRIES
    assert len(notices(world)) == 2


@pytest.mark.parametrize("keep_checkpoints", [True, False], ids=["checkpoints", "log alone"])
def test_a_restart_of_pulse_neither_forgets_nor_repeats_stops(keep_checkpoints: bool) -> None:
    async def story(world: World) -> None:
        in_vain(world)
        await up(world)
        await world.ask(ProcessStopRequested(expires_us=DAY_US), "gateway")
        for _ in range(50):
            await asyncio.sleep(7)
            await world.crash()
            if not keep_checkpoints:
                world.checkpoints = MemoryCheckpoints()
            await world.start()
        assert process(world)["state"] == "stopping"

    world = simulate(story, ONE)
    assert len(stops(world)) == STOP_TRIES
    assert len(notices(world)) == 1


def test_a_stop_that_takes_its_time_is_waited_for() -> None:
    async def slow(_event: Event) -> None:
        await asyncio.sleep(50)

    async def story(world: World) -> None:
        by(world, slow)
        await up(world)
        await world.ask(ProcessStopRequested(expires_us=DAY_US), "gateway")
        await asyncio.sleep(40)
        assert process(world)["state"] == "stopping"
        await asyncio.sleep(20)
        assert process(world)["state"] == "stopped"

    assert len(stops(simulate(story, ONE))) == 1


@pytest.mark.parametrize("dies", [False, True], ids=["lives", "dies and leaves a helper"])
def test_what_a_restart_under_way_starts_after_the_stop_is_stopped_at_once_with_all_it_has_left(
    dies: bool,
) -> None:
    async def story(world: World) -> None:
        async def end_helpers(_event: Event) -> None:
            world.host.left.clear()

        by(world, end_helpers)
        await up(world)
        world.executors["restart-process"].seconds = 5.0
        await world.ask(ProcessRestartRequested(), "gateway")
        await asyncio.sleep(1)
        await world.ask(ProcessStopRequested(expires_us=DAY_US), "gateway")
        await asyncio.sleep(1)
        assert (process(world)["state"], world.host.processes, len(world.host.starts)) == ("stopped", {}, 1)
        if dies:
            world.host.dying.add("gateway")
            world.host.left["gateway"] = (ProcessId(7, 7),)
        await asyncio.sleep(5)
        assert (process(world)["state"], world.host.processes, len(world.host.starts)) == ("stopped", {}, 2)
        assert world.host.left == {}

    simulate(story, ONE)


def test_what_a_supervisor_brings_back_at_once_is_stopped_again_and_told() -> None:
    async def story(world: World) -> None:
        await up(world)
        await world.ask(ProcessStopRequested(expires_us=DAY_US), "gateway")
        for _ in range(400):
            await asyncio.sleep(1)
            if "gateway" not in world.host.processes:
                world.host.start("gateway")
        assert process(world)["state"] == "stopping"

    world = simulate(story, ONE)
    assert len(stops(world)) == STOP_TRIES
    assert len(notices(world)) == 1


def test_what_somebody_starts_long_after_is_let_live_and_told_once() -> None:
    async def story(world: World) -> None:
        await up(world)
        await world.ask(ProcessStopRequested(expires_us=DAY_US), "gateway")
        await asyncio.sleep(100)
        world.host.start("gateway")
        await asyncio.sleep(3600)
        assert process(world)["state"] == "up"

    world = simulate(story, ONE)
    assert len(stops(world)) == 1
    assert len(notices(world)) == 1


def test_a_paused_pulse_stops_when_it_goes_on() -> None:
    async def story(world: World) -> None:
        await up(world)
        await world.ask(Paused())
        await world.ask(ProcessStopRequested(expires_us=DAY_US), "gateway")
        await asyncio.sleep(100)
        assert (process(world)["state"], stops(world)) == ("stopping", [])
        await world.ask(Resumed())
        await asyncio.sleep(1)
        assert process(world)["state"] == "stopped"

    simulate(story, ONE)


def test_what_is_starting_when_it_is_wanted_down_does_not_live_on_unseen() -> None:
    async def story(world: World) -> None:
        world.host.unresponsive.add("gateway")
        await world.start()
        await asyncio.sleep(1)
        assert process(world)["state"] == "starting"
        await world.ask(ProcessStopRequested(expires_us=DAY_US), "gateway")
        await asyncio.sleep(10)
        assert (process(world)["state"], world.host.processes) == ("stopped", {})

    simulate(story, {"process": [{"name": "gateway", "start": ["gateway"], "tcp": "127.0.0.1:1"}]})


def test_a_stop_that_a_crash_interrupted_is_done_again_and_counts_once() -> None:
    async def story(world: World) -> None:
        stuck = asyncio.Event()

        async def hang(_event: Event) -> None:
            stuck.set()
            await asyncio.sleep(99)

        by(world, hang)
        await up(world)
        await world.ask(ProcessStopRequested(expires_us=DAY_US), "gateway")
        await stuck.wait()
        await world.crash()
        by(world, failing(0))
        await world.start()
        await asyncio.sleep(1)
        assert process(world)["state"] == "stopped"

    assert len(stops(simulate(story, ONE))) == 1
