"""What a watcher costs is put on its account, and on nobody else's."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from pulse_adapters.memory.clock import virtual_loop
from pulse_core.model.vitals import Reading, Window
from pulse_core.watch.watcher_costs import MAX_TIMINGS, Cost, Costs


@dataclass
class Probe:
    """A watcher whose look is the test's."""

    look: Callable[[], Awaitable[Any]]
    name: str = "probe"
    interval: float = 5.0
    timeout: float = 2.0
    nudge: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def key(self) -> str:
        return self.name

    async def collect(self) -> Reading:
        await self.look()
        return Reading({})

    def should_wake(self, window: Window) -> bool:
        return False


class Processor:
    """Processor time that passes only where somebody works."""

    def __init__(self) -> None:
        self.spent = 0.0
        self.costs = Costs(lambda: self.spent)

    async def work(self, seconds: float, wait: float = 0.0) -> None:
        self.spent += seconds
        await asyncio.sleep(wait)

    async def look(self, look: Callable[[], Awaitable[Any]], name: str = "probe") -> Cost:
        await self.costs.collect(Probe(look, name))
        return self.costs.of[name]


def told(story: Callable[[Processor], Awaitable[None]]) -> None:
    loop = virtual_loop()
    try:
        loop.run_until_complete(_counting(story))
    finally:
        loop.close()


async def _counting(story: Callable[[Processor], Awaitable[None]]) -> None:
    processor = Processor()
    with processor.costs.count_tasks():
        await story(processor)


def test_a_look_is_kept_with_what_it_took() -> None:
    async def story(processor: Processor) -> None:
        await asyncio.sleep(10)
        cost = await processor.look(lambda: processor.work(0.2, wait=3))
        cost = await processor.look(lambda: processor.work(0.1, wait=1))
        assert (cost.looks, cost.failures) == (2, 0)
        assert cost.spent == pytest.approx(0.3)
        assert [tuple(look) for look in cost.recent] == [
            pytest.approx((10, 3, 0)),
            pytest.approx((13, 1, 0.2)),
        ]

    told(story)


def test_what_others_do_while_a_watcher_waits_is_not_its_cost() -> None:
    async def story(processor: Processor) -> None:
        async def others() -> None:
            for _ in range(10):
                await processor.work(1.0, wait=0.1)

        busy = asyncio.create_task(others())
        cost = await processor.look(lambda: processor.work(0.2, wait=5))
        await busy
        assert cost.spent == pytest.approx(0.2)

    told(story)


def test_the_tasks_of_a_look_and_their_tasks_are_its_cost_even_afterwards() -> None:
    async def story(processor: Processor) -> None:
        async def child() -> None:
            await processor.work(0.5)
            await asyncio.gather(processor.work(0.25), processor.work(0.25))

        late: list[asyncio.Task[None]] = []

        async def look() -> None:
            await asyncio.gather(child(), child())
            late.append(asyncio.create_task(processor.work(1.0)))

        cost = await processor.look(look)
        assert cost.spent == pytest.approx(2.0)
        await late[0]
        assert cost.spent == pytest.approx(3.0)

    told(story)


def test_two_watchers_at_the_same_time_have_accounts_of_their_own() -> None:
    async def story(processor: Processor) -> None:
        both = (
            processor.look(lambda: asyncio.gather(processor.work(0.1, 1), processor.work(0.1, 1)), "one"),
            processor.look(lambda: processor.work(0.7, wait=0.5), "other"),
        )
        one, other = await asyncio.gather(*both)
        assert [one.spent, other.spent] == pytest.approx([0.2, 0.7])

    told(story)


async def broken() -> None:
    raise ValueError("no such sensor")


def test_a_look_that_raises_is_a_failure_and_is_passed_on() -> None:
    async def story(processor: Processor) -> None:
        with pytest.raises(ValueError, match="no such sensor"):
            await processor.look(broken)
        assert (processor.costs.of["probe"].looks, processor.costs.of["probe"].failures) == (1, 1)

    told(story)


def test_a_look_that_hangs_is_a_failure_that_took_until_it_was_ended() -> None:
    async def story(processor: Processor) -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(2):
                await processor.look(lambda: asyncio.gather(asyncio.sleep(60), asyncio.sleep(60)))
        cost = processor.costs.of["probe"]
        assert (cost.failures, cost.recent[0].took) == (1, 2)

    told(story)


def test_only_the_newest_looks_are_remembered() -> None:
    async def story(processor: Processor) -> None:
        for _ in range(MAX_TIMINGS + 10):
            cost = await processor.look(lambda: processor.work(0.001, wait=1))
        assert (cost.looks, len(cost.recent), cost.recent[0].at) == (MAX_TIMINGS + 10, MAX_TIMINGS, 10)

    told(story)


def test_afterwards_tasks_are_made_as_before() -> None:
    loop = virtual_loop()
    try:
        loop.run_until_complete(_counting(lambda processor: processor.work(0)))
        assert loop.get_task_factory() is None
    finally:
        loop.close()
