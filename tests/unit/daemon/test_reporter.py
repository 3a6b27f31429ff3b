"""The reporter of contained failures: each is recorded once, and its repetitions together, as of the last of them."""

import asyncio
import json
from typing import Any

from tests.simulation.world import World, simulate


def reported(world: World) -> list[dict[str, Any]]:
    """What was recorded of `metrics`, each with its time in whole seconds."""
    found = (event for event in world.events("error") if event.subject == "metrics")
    return [{**json.loads(event.data), "s": event.mono // 1_000_000} for event in found]


def report(world: World) -> int:
    """Report a failure; returns the second."""
    assert world.daemon is not None
    world.daemon.reporter("metrics", "no such directory")
    return world.daemon.parts.clock.now().mono // 1_000_000


def test_repetitions_are_recorded_together_as_of_the_last_of_them_though_none_follows() -> None:
    async def story(world: World) -> None:
        await world.start()
        first = report(world)
        for _ in range(3):
            await asyncio.sleep(60)
            last = report(world)
        await asyncio.sleep(300)
        assert [one["s"] for one in reported(world)] == [first]
        await asyncio.sleep(200)
        assert [one["s"] for one in reported(world)] == [first, last]
        assert sum(1 + one.get("repeats", 0) for one in reported(world)) == 4
        await asyncio.sleep(2_000)
        assert len(reported(world)) == 2
        again = report(world)
        await asyncio.sleep(1)
        assert reported(world)[-1] == {**reported(world)[0], "s": again}

    simulate(story, {})


def test_a_daemon_that_stops_records_what_it_has_only_counted() -> None:
    async def story(world: World) -> None:
        await world.start()
        report(world)
        await asyncio.sleep(5)
        last = report(world)
        await world.end()
        assert [one.get("repeats", 0) for one in reported(world)] == [0, 0]
        assert reported(world)[-1]["s"] == last
        assert world.log.events[-1].kind == "daemon-stopped"

    simulate(story, {})
