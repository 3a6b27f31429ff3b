"""Watchers of an engine wake the tick, and not as often as they like."""

import asyncio
from typing import Any

from pulse_adapters.memory.clock import VirtualClock, virtual_loop
from pulse_adapters.memory.stores import MemoryVitals
from pulse_core.model.vitals import Reading, Window
from pulse_core.tick.ticker import ASKED_A_SECOND, ASKED_AT_ONCE, Waker
from pulse_core.watch.loop import WatchLoop

WATCHERS, SECONDS, GAP = 200, 20, 0.05


class Eager:
    """Has each second a sample that is worth a tick, each of these at a moment of its own."""

    interval = timeout = 1.0

    def __init__(self, number: int) -> None:
        self.name = self.key = f"eager-{number}"
        self.nudge, self._late = asyncio.Event(), number / WATCHERS

    async def collect(self) -> Reading:
        await asyncio.sleep(self._late)
        return Reading({})

    def should_wake(self, window: Window) -> bool:
        return True


def test_the_watchers_of_an_engine_hurry_the_tick_as_seldom_as_those_outside() -> None:
    ticks = 0

    async def story() -> None:
        waker, loop = Waker(), asyncio.get_running_loop()
        nobody: Any = None
        watch = WatchLoop(
            (), nobody, MemoryVitals(), VirtualClock(loop.time), waker, nobody, nobody, ask=waker.ask
        )
        watch.register([Eager(number) for number in range(WATCHERS)])

        async def tick() -> None:
            nonlocal ticks
            while True:
                await waker.wait(GAP, 15.0)
                ticks += 1

        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(watch.run()), group.create_task(tick())]
            await asyncio.sleep(SECONDS)
            for task in tasks:
                task.cancel()

    loop = virtual_loop()
    try:
        loop.run_until_complete(story())
    finally:
        loop.close()
    assert ticks > SECONDS
    assert ticks <= ASKED_AT_ONCE + SECONDS * (ASKED_A_SECOND + 1 / GAP)
