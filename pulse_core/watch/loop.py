"""The loop around every watcher: collect, store, conclude, wake, wait; a failing one is backed off alone."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from pulse_core.model.backoff import Backoff
from pulse_core.model.errors import PulseError, describe_error
from pulse_core.model.kinds import ConditionRaised
from pulse_core.model.payload import Wake
from pulse_core.model.vitals import Reading, Sample, Window, windows_after
from pulse_core.ports.clock import Clock
from pulse_core.ports.engine import EngineCodeBroken
from pulse_core.ports.loops import Supervise, coalesced, is_cancelled, unsupervised, wait_within
from pulse_core.ports.stores import Vitals
from pulse_core.ports.watcher import Watcher, conditions_of
from pulse_core.record.journal import Journal
from pulse_core.watch.watcher_costs import Costs

BACKOFF_MAX = 300.0
"""Most seconds between two samples of a watcher that fails, unless its interval is longer."""
FAILING_GAP = 1.0
"""Seconds from a failure to the next sample at least, whatever nudges it: a death must not wait until one is due anyway."""
REST = 9.0
"""A watcher that nobody nudges rests at least so many times as long as its last look took of the loop: whatever the settings
say, and however much there is to look at, it takes at most a tenth of the loop from those that answer deaths."""


class WatchLoop:
    """Runs watchers and holds their windows.

    wake is called with a reason when a sample is worth a tick, and ask (or else wake) when one of a registered watcher is;
    failed with (whose, message) when a watcher failed or hung, and broke (or else failed) when an engine's code is to
    blame for it;
    answered returns when a tick has seen the conclusions that are known now;
    pace returns how a watcher is slowed down: the factor on its interval, and the least seconds between two
    samples whatever nudges it; supervise runs the loop of each registered watcher, which the others must outlive;
    cpu returns the seconds of processor time of the loop.
    """

    def __init__(
        self,
        watchers: Iterable[Watcher],
        journal: Journal,
        vitals: Vitals,
        clock: Clock,
        wake: Callable[[str], None],
        failed: Callable[[str, str], None],
        answered: Callable[[], Awaitable[None]],
        pace: Callable[[Watcher], tuple[float, float]] = lambda watcher: (1.0, 0.0),
        broke: Callable[[str, str], None] | None = None,
        supervise: Supervise = unsupervised,
        cpu: Callable[[], float] = time.thread_time,
        ask: Callable[[str], None] | None = None,
    ) -> None:
        self._own = tuple(watchers)
        self._enlisted: tuple[Watcher, ...] = ()
        self._tasks: list[asyncio.Task[None]] = []
        self._group: asyncio.TaskGroup | None = None
        self.pace = pace
        self.journal, self.vitals, self.clock = journal, vitals, clock
        self.wake, self.failed, self.answered = wake, failed, answered
        self.ask = ask or wake
        self.broke, self.supervise = broke or failed, supervise
        self.costs = Costs(cpu)
        self._windows: dict[str, Window] = {}

    @property
    def watchers(self) -> tuple[Watcher, ...]:
        """All watchers that are run."""
        return (*self._own, *self._enlisted)

    def add(self, watchers: Iterable[Watcher]) -> None:
        """Run these built-in ones, too, from now on."""
        more = tuple(watchers)
        self._own += more
        if self._group:
            for watcher in more:
                self._begin(self._group, watcher, self._run_watcher(watcher))

    def register(self, watchers: Iterable[Watcher]) -> None:
        """Run these besides the built-in ones, instead of those that were registered before.

        The windows of keys without a watcher are dropped, so that no rule takes them for current.
        """
        for task in self._tasks:
            task.cancel()
        gone = {watcher.key for watcher in self._enlisted}
        self._enlisted = tuple(watchers)
        for key in gone - {watcher.key for watcher in self.watchers}:
            self._windows.pop(key, None)
        self._tasks = (
            [self._begin(self._group, watcher, self._supervised(watcher)) for watcher in self._enlisted]
            if self._group
            else []
        )

    @property
    def windows(self) -> Mapping[str, Window]:
        """The windows as they are now; the mapping does not change any more."""
        return dict(self._windows)

    def newest(self, key: str) -> Sample | None:
        """The newest sample of this key, if there is one."""
        return self._windows[key].last if key in self._windows else None

    def remember(self, samples: Sequence[Sample]) -> None:
        """Fill the windows with stored samples."""
        self._windows = windows_after(self._windows, samples)

    async def collect_once(self, watcher: Watcher) -> bool:
        """Collect one sample now; whether that worked, its conclusions recorded."""
        watcher.nudge.clear()
        try:
            async with asyncio.timeout(watcher.timeout) as limit:
                reading = await self.costs.collect(watcher)
            return await self._keep(watcher, reading)
        except TimeoutError as error:  # or one of its own, as of a file system that does not answer
            late = f"did not answer within {watcher.timeout:g} s"
            self.failed(f"watcher:{watcher.name}", late if limit.expired() else describe_error(error))
            return False
        except asyncio.CancelledError:
            if is_cancelled():
                raise
            self.failed(f"watcher:{watcher.name}", "it cancelled itself")
            return False
        except EngineCodeBroken as error:
            self.broke(f"watcher:{watcher.name}", str(error))
            return False
        except Exception as error:  # noqa: BLE001 - a broken watcher must not disturb the others
            self.failed(f"watcher:{watcher.name}", describe_error(error))
            return False

    async def run(self) -> None:
        """Run all watchers for ever; ends by being cancelled."""
        with self.costs.count_tasks():
            try:
                async with asyncio.TaskGroup() as self._group:
                    for watcher in self._own:
                        self._begin(self._group, watcher, self._run_watcher(watcher))
                    self.register(self._enlisted)
                    await asyncio.Event().wait()  # watchers registered later run in the same group
            finally:
                self._group = None

    def _begin(
        self, group: asyncio.TaskGroup, watcher: Watcher, work: Coroutine[Any, Any, None]
    ) -> "asyncio.Task[None]":
        return group.create_task(work, name=f"watcher {watcher.name}")

    async def _supervised(self, watcher: Watcher) -> None:
        await self.supervise(f"watcher {watcher.name}", partial(self._run_watcher, watcher))

    async def _run_watcher(self, watcher: Watcher) -> None:
        failures = 0 if await self.collect_once(watcher) else 1
        while True:
            rest = Backoff(watcher.interval, max(BACKOFF_MAX, watcher.interval)).after(failures + 1)
            stretch, gap = self.pace(watcher)
            if gap:
                await asyncio.sleep(gap)
            rest = max(0.0, rest * stretch - gap, REST * self.costs.last_of(watcher) - gap)
            if failures:  # nudges hurry it less, and an engine's not at all
                pause = rest if watcher in self._enlisted else min(rest, FAILING_GAP)
                await asyncio.sleep(pause)
                rest -= pause
            await wait_within(watcher.nudge, coalesced(rest))
            failures = 0 if await self.collect_once(watcher) else failures + 1

    async def _keep(self, watcher: Watcher, reading: Reading) -> bool:
        sample = self.vitals.sample(watcher.key, self.clock.now(), reading.data)
        window = self._windows[watcher.key] = self._windows.get(watcher.key, Window()).plus(sample)
        if reading.conclusions:
            self._report_undeclared(watcher, reading)
            try:
                if any(one.payload.wakes is not Wake.NEVER for one in reading.conclusions):
                    await self.journal.announce(reading.conclusions, self.answered)
                else:  # no tick answers these soon, and it would look at nothing more until the next one
                    await self.journal.append_or_hold(*reading.conclusions)
            except PulseError as error:
                words = f"its conclusions could not be recorded: {error}"
                self.failed(f"watcher:{watcher.name}", words)
                return False
        if watcher.should_wake(window):
            (self.ask if watcher in self._enlisted else self.wake)(f"watcher:{watcher.name}")
        return True

    def _report_undeclared(self, watcher: Watcher, reading: Reading) -> None:
        """Report a condition that the watcher does not say to be its own: safe mode would leave it raised for ever."""
        own = conditions_of(watcher)
        for one in reading.conclusions:
            if isinstance(one.payload, ConditionRaised) and not one.subject.startswith(own):
                self.failed(f"watcher:{watcher.name}", f"{one.subject} is none of its `conditions`")
