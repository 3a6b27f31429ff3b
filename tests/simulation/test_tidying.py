"""What is of no use any more goes: every hour, when somebody asks, and whatever fails on the way."""

import asyncio
from typing import Any

import pytest

from pulse_core.model.errors import LogUnavailable
from pulse_core.model.kinds import GcDone, GcRequested
from pulse_core.model.payload import decode
from pulse_core.ports.stores import SweepResult
from tests.long_form import sampled
from tests.simulation.world import World, simulate

WATCH: dict[str, Any] = {
    "process": [{"name": "a", "start": ["a"]}],
    "watch": {"keep": "1h", "process_interval": "1m"},
}


class Broom:
    """Sweeps so many things each time; counts how often, and fails if it is told to."""

    def __init__(self, failing: Exception | None = None) -> None:
        self.failing, self.swept = failing, 0

    async def __call__(self) -> SweepResult:
        self.swept += 1
        if self.failing:
            raise self.failing
        return SweepResult(objects=2, files=1, bytes=30)


def done(world: World) -> list[GcDone]:
    found = [decode(event.kind, event.data) for event in world.events("gc-done")]
    return [one for one in found if isinstance(one, GcDone)]


def test_it_is_done_soon_after_the_start_and_then_every_hour_without_a_word() -> None:
    broom = Broom()

    async def story(world: World) -> None:
        await world.start()
        await asyncio.sleep(60)
        assert broom.swept == 0
        await asyncio.sleep(3 * 3_600)
        assert broom.swept == 3

    assert not simulate(story, WATCH, sweep=broom).events("gc-done", "error")


def test_who_asks_is_answered_with_what_went() -> None:
    async def story(world: World) -> None:
        await world.start()
        await asyncio.sleep(2 * 3_600 + 1_000)
        request = await world.ask(GcRequested())
        await asyncio.sleep(1)
        answer = world.events("gc-done")[0]
        assert answer.cause == request.id

    told = done(simulate(story, WATCH, sweep=Broom()))
    assert [(one.objects, one.files, one.bytes, one.fault) for one in told] == [(2, 1, 30, "")]
    assert told[0].samples > 10


@pytest.mark.parametrize(
    "failing", sampled([LogUnavailable("the log can't be read"), OSError(5, "input/output error")], 2)
)
def test_a_sweep_that_fails_is_reported_and_tried_again(failing: Exception) -> None:
    broom = Broom(failing)

    async def story(world: World) -> None:
        await world.start()
        await world.ask(GcRequested())
        await asyncio.sleep(2 * 3_600 + 60)
        assert broom.swept == 3

    world = simulate(story, WATCH, sweep=broom)
    assert [one.fault for one in done(world)] == [str(failing)]
    assert str(failing) in world.events("error", subject="gc")[0].data


def test_requests_of_before_a_restart_are_not_answered_twice() -> None:
    async def story(world: World) -> None:
        await world.start()
        await world.ask(GcRequested())
        await asyncio.sleep(10)
        await world.crash()
        await world.start()
        await asyncio.sleep(10)

    assert len(done(simulate(story, WATCH, sweep=Broom()))) == 1
