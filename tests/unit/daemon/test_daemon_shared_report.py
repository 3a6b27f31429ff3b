"""The status costs the loop little, however many ask for it and however often."""

import asyncio

import pytest

from pulse_adapters.ipc.daemon_client import STATUS_WAIT
from pulse_adapters.memory.clock import virtual_loop
from pulse_core.daemon.shared_report import LONGEST, PAUSE, SharedReport


class Counter:
    """Computes a status, and counts how often."""

    def __init__(self) -> None:
        self.times, self.shared = 0, SharedReport()

    def compute(self) -> dict[str, int]:
        self.times += 1
        return {"number": self.times}

    async def ask(self) -> object:
        return (await self.shared.after_now(self.compute))["number"]


def test_all_who_ask_meanwhile_share_one_status() -> None:
    async def ask_together() -> list[object]:
        return [await counter.ask(), *await asyncio.gather(*(counter.ask() for _ in range(100)))]

    counter = Counter()  # asked by all within one pause, whoever works beside this test
    with asyncio.Runner(loop_factory=virtual_loop) as runner:
        assert runner.run(ask_together()) == [1, *[2] * 100]
    assert counter.times == 2


async def test_one_who_asks_again_and_again_is_answered_at_a_pace() -> None:
    counter, began = Counter(), asyncio.get_running_loop().time()
    assert [await counter.ask() for _ in range(4)] == [1, 2, 3, 4]
    assert asyncio.get_running_loop().time() - began >= 3 * PAUSE * 0.9


@pytest.mark.parametrize(("took", "rest"), [(0.03, 9 * 0.03), (60.0, LONGEST)])
def test_one_that_takes_long_takes_a_tenth_of_the_loop_and_keeps_nobody_waiting_for_long(
    took: float, rest: float
) -> None:
    late = 0.0
    loop = virtual_loop()
    on_time = loop.time
    loop.time = lambda: on_time() + late  # type: ignore[method-assign]  # as computing takes

    def compute() -> dict[str, int]:
        nonlocal late
        late += took
        return {}

    async def ask_again_and_again() -> float:
        shared, began = SharedReport(), loop.time()
        for _ in range(11):
            await shared.after_now(compute)
        return loop.time() - began

    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        assert runner.run(ask_again_and_again()) == pytest.approx(11 * took + 10 * rest, rel=0.05)


async def test_a_status_that_fails_fails_for_who_asked_and_the_next_one_is_computed() -> None:
    counter = Counter()

    def fails() -> dict[str, int]:
        raise ValueError

    failed = await asyncio.gather(counter.shared.after_now(fails), return_exceptions=True)
    assert isinstance(failed[0], ValueError)
    assert await counter.ask() == 1


def test_whoever_asks_is_told_before_it_takes_the_daemon_for_stuck() -> None:
    assert LONGEST < STATUS_WAIT / 2
