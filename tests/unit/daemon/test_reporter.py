"""The reporter of contained failures: each is recorded once, and its repetitions together, as of the last of them."""

import asyncio
import json
from typing import Any

from pulse_core.app.engine.history import KINDS as HISTORY
from pulse_core.app.engine.history import turns_in
from pulse_core.model.event import Draft
from pulse_core.model.kinds import Effect, EnginePromoted
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


def test_what_is_refused_of_a_rule_counts_against_its_commit_however_late_it_is_recorded() -> None:
    async def story(world: World) -> None:
        daemon = await world.start()

        async def refused(commit: str) -> None:
            wish = Effect(action="nothing", key="mine", rule="mine", tick=1, commit=commit)
            await daemon.executor.submit([wish], daemon.gate)

        for commit, times in (("bad", 30), ("mended", 1)):
            await world.log.append(Draft(EnginePromoted(previous="", watch_us=700_000_000), commit))
            for _ in range(times):
                await refused(commit)
            await asyncio.sleep(1)
        await asyncio.sleep(610)
        errors = [event for event in world.events("error") if event.subject == "rule:mine"]
        said = [json.loads(event.data) for event in errors]
        assert [(one["commit"], one.get("repeats", 0)) for one in said] == [
            ("bad", 0),
            ("mended", 0),
            ("bad", 28),
        ]
        assert len(daemon.parts.view().engine.errors) == 1
        bad, mended = turns_in(event.spelled() for event in world.log.events if event.kind in HISTORY)
        assert (bad["errors"], mended["errors"]) == (30, 1)

    simulate(story, {})
