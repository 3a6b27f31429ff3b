"""Measures what watchers cost: duration, processor time on the loop, and failures."""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

from pulse_core.model.steps import run_in_steps
from pulse_core.model.vitals import Reading
from pulse_core.ports.watcher import Watcher

T = TypeVar("T")
MAX_TIMINGS = 200
"""How many of the newest timings are kept for each watcher."""

_CURRENT_COST: "ContextVar[Cost | None]" = ContextVar("whose", default=None)
"""The cost record that new tasks are charged to."""


class WatchTiming(NamedTuple):
    """One collection: when it began (loop time), how long it took, and what the watcher had spent before; all in seconds."""

    at: float
    took: float
    spent: float


@dataclass
class Cost:
    """What a watcher has cost since the daemon's start. spent: seconds of the loop's processor time."""

    looks: int = 0
    failures: int = 0
    spent: float = 0.0
    recent: deque[WatchTiming] = field(default_factory=lambda: deque(maxlen=MAX_TIMINGS))


class Costs:
    """Calls watchers' `collect` and records what that costs, tasks that they start included.

    Child processes and threads are not included. cpu: seconds of processor time of this thread; of: by the watcher's name.
    """

    def __init__(self, cpu: Callable[[], float] = time.thread_time) -> None:
        self._cpu = cpu
        self.of: dict[str, Cost] = {}

    async def collect(self, watcher: Watcher) -> Reading:
        """Call its `collect`; raises what that raises."""
        cost = self.of.setdefault(watcher.name, Cost())
        now = asyncio.get_running_loop().time
        began, spent, failed = now(), cost.spent, 1
        mine = _CURRENT_COST.set(cost)
        try:
            reading = await metered(watcher.collect(), cost, self._cpu)
            failed = 0
            return reading
        finally:
            _CURRENT_COST.reset(mine)
            cost.looks += 1
            cost.failures += failed
            cost.recent.append(WatchTiming(began, now() - began, spent))

    def last_of(self, watcher: Watcher) -> float:
        """Seconds of the loop's processor time that its newest look took."""
        cost = self.of.get(watcher.name)
        return cost.spent - cost.recent[-1].spent if cost and cost.recent else 0.0

    @contextmanager
    def count_tasks(self) -> Iterator[None]:
        """Charge tasks to the watcher that started them, directly or through another task."""
        loop = asyncio.get_running_loop()
        before = loop.get_task_factory()
        loop.set_task_factory(self._task)
        try:
            yield
        finally:
            loop.set_task_factory(before)

    def _task(
        self, loop: asyncio.AbstractEventLoop, work: Any, **how: Any
    ) -> "asyncio.Task[Any]":  # the types of a task factory differ between versions of Python
        if (cost := _CURRENT_COST.get()) is None:
            return asyncio.Task(work, loop=loop, **how)
        task = asyncio.Task(metered(work, cost, self._cpu), loop=loop, **how)
        task.add_done_callback(lambda _: work.close())  # of a task that was cancelled before its first step
        return task


async def metered(work: Coroutine[Any, Any, T], cost: Cost, cpu: Callable[[], float]) -> T:
    """Run a coroutine and charge its steps to a cost record."""

    def charge(began: float) -> None:
        cost.spent += cpu() - began

    return await run_in_steps(work, cpu, charge)
