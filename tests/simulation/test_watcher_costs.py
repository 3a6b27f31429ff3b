"""A running daemon tells what each of its watchers costs."""

import asyncio
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

from tests.simulation.test_senses import Probe, broken
from tests.simulation.world import World, simulate


def watcher(world: World, name: str) -> Mapping[str, Any]:
    assert world.daemon is not None
    return next(one for one in world.daemon.report()["watchers"] if one["name"] == name)


def test_every_watcher_is_told_with_its_times() -> None:
    slow = Probe("slow", lambda: asyncio.sleep(1.0), interval=9)

    async def story(world: World) -> None:
        daemon = await world.start()
        await asyncio.sleep(95.5)
        assert [one["name"] for one in daemon.report()["watchers"]] == ["process-alive", "slow"]
        told = watcher(world, "slow")
        assert (told["interval_s"], told["looks"], told["failures"]) == (10, 10, 0)  # a look takes 1 s
        assert (told["p50_ms"], told["p99_ms"]) == (1000, 1000)
        assert 95 < told["over_s"] < 96
        assert 0 < told["cpu"] < 0.01

    simulate(story, {}, watchers=(slow,))


def test_who_takes_much_of_the_loop_looks_less_often_than_the_settings_say() -> None:
    looks = list[float]()

    async def story(world: World) -> None:
        async def dear() -> None:
            looks.append(asyncio.get_running_loop().time())
            world.cpu += 0.5

        world.watchers = (Probe("dear", dear, interval=1),)
        await world.start()
        await asyncio.sleep(60)
        assert {round(late - early, 1) for early, late in pairwise(looks)} <= {4.0, 5.0}

    simulate(story, {})


def test_failures_are_counted() -> None:
    async def story(world: World) -> None:
        await world.start()
        await asyncio.sleep(60)
        told = watcher(world, "bad")
        assert 2 < told["failures"] == told["looks"]

    simulate(story, {}, watchers=(Probe("bad", broken),))


def test_a_watcher_that_has_not_looked_yet_has_no_times() -> None:
    async def story(world: World) -> None:
        await world.start()
        told = watcher(world, "first")
        assert (told["looks"], told["p50_ms"], told["p99_ms"], told["cpu"]) == (0, None, None, None)

    simulate(story, {}, watchers=(Probe("first", lambda: asyncio.sleep(1.0)),))
