"""Callers have a share of the loop, in virtual time."""

import asyncio
from collections.abc import Coroutine

import pytest

from pulse_adapters.ipc.loop_share import MOST, LoopShare
from pulse_adapters.memory.clock import virtual_loop


def in_virtual_time(story: Coroutine[None, None, None]) -> None:
    loop = virtual_loop()
    try:
        loop.run_until_complete(story)
    finally:
        loop.close()


async def turns(share: LoopShare, number: int) -> float:
    """The seconds that so many callers take, all of whom ask at once."""
    loop = asyncio.get_running_loop()
    began = loop.time()
    await asyncio.gather(*(share.turn() for _ in range(number)))
    return loop.time() - began


def test_callers_who_ask_for_much_rest_and_the_first_ones_do_not() -> None:
    work = iter(range(10_000))

    async def story() -> None:
        share = LoopShare(0.1, 1.0, lambda: 0.002 * next(work))
        assert await turns(share, 500) == pytest.approx(0, abs=1e-6)
        assert await turns(share, 1_000) == pytest.approx(20, rel=0.01)
        await asyncio.sleep(5)  # half a second is theirs again
        assert await turns(share, 200) == pytest.approx(0, abs=1e-6)

    in_virtual_time(story())


def test_what_the_loop_does_for_others_keeps_no_caller_out() -> None:
    work = iter(range(10_000))

    async def story() -> None:
        share = LoopShare(0.1, 0.0, lambda: 7.0 * next(work))
        assert await turns(share, 100) == pytest.approx(100 * MOST / 0.1, rel=0.02)

    in_virtual_time(story())
