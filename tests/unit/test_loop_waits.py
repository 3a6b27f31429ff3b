"""How loops wait: for an event, and together with others that look again now and then."""

import asyncio
from collections.abc import Coroutine

import pytest

from pulse_adapters.memory.clock import virtual_loop
from pulse_core.ports.loops import coalesced, wait_within


def in_virtual_time(story: Coroutine[None, None, None]) -> None:
    loop = virtual_loop()
    try:
        loop.run_until_complete(story)
    finally:
        loop.close()


@pytest.mark.parametrize("begun", [0.0, 0.1, 0.25, 0.999, 7.3])
def test_loops_of_whole_seconds_wake_together_whenever_they_began(begun: float) -> None:
    async def looking(seconds: float, woken: set[float]) -> None:
        for _ in range(5):
            await asyncio.sleep(coalesced(seconds))
            woken.add(round(asyncio.get_running_loop().time(), 3))

    async def story() -> None:
        await asyncio.sleep(begun)
        woken: set[float] = set()
        await asyncio.gather(looking(1, woken), looking(2, woken), looking(2.5, woken), looking(5, woken))
        assert all(moment == int(moment) for moment in woken)

    in_virtual_time(story())


@pytest.mark.parametrize("seconds", [0.02, 0.5, 1.0, 1.7, 5.0])
def test_nobody_rests_longer_than_asked_nor_less_by_a_second(seconds: float) -> None:
    async def story() -> None:
        for _ in range(20):
            await asyncio.sleep(0.07)
            rest = coalesced(seconds)
            assert max(0.0, seconds - 1) <= rest <= seconds + 1e-6
            assert seconds >= 1 or rest == seconds

    in_virtual_time(story())


def test_waiting_ends_with_the_event_or_with_the_time() -> None:
    async def story() -> None:
        loop, event = asyncio.get_running_loop(), asyncio.Event()
        assert not await wait_within(event, 3.0)
        assert loop.time() == pytest.approx(3.0)
        loop.call_later(1.0, event.set)
        assert await wait_within(event, 3.0)
        assert loop.time() == pytest.approx(4.0)

    in_virtual_time(story())
