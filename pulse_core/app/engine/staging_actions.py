"""Staging's watchers and executors while `upulse dev` runs: samples are shown and folded, and recorded nowhere."""

import asyncio
from collections.abc import Callable, Mapping

from pydantic import BaseModel, ValidationError

from pulse_core.app.engine.context import Windows
from pulse_core.app.engine.dev_reports import SampleTaken
from pulse_core.model.errors import PulseError
from pulse_core.model.event import Event
from pulse_core.model.kinds import Effect
from pulse_core.model.payload import encode
from pulse_core.model.vitals import Sample, Window
from pulse_core.ports.clock import Clock
from pulse_core.ports.engine import ActionHost, ActionHosts, CannotLoad, EngineFault, ReservedNames, Revision
from pulse_core.ports.executor import Executor, Unsure
from pulse_core.ports.loops import wait_within
from pulse_core.ports.watcher import Watcher

MEMORY = 512
"""MiB that what is tried may have."""
RETRY = 5.0
"""Seconds after which a watcher that failed is asked again."""


TellActions = Callable[[SampleTaken | EngineFault], None]


class StagingActions:
    """Runs a tree's watchers, and offers its executors. tell: hears of samples and faults."""

    def __init__(self, hosts: Callable[[Windows], ActionHosts], clock: Clock, tell: TellActions) -> None:
        self._clock, self._tell = clock, tell
        self._hosts = hosts(lambda: self.windows)
        self._action_host: ActionHost | None = None
        self._watching: list[asyncio.Task[None]] = []
        self.windows: dict[str, Window] = {}

    @property
    def executors(self) -> Mapping[str, Executor]:
        """By action."""
        return self._action_host.executors if self._action_host else {}

    @property
    def params(self) -> Mapping[str, type[BaseModel]]:
        """What its executors' effects must say, by action."""
        return {action: executor.params for action, executor in self.executors.items()}

    async def load(self, path: str) -> None:
        """Begin anew with what is saved; what can't be loaded is told, and leaves nothing running."""
        await self._end()
        try:
            self._action_host = await self._hosts.start(
                Revision("staging", path), MEMORY, ReservedNames(), self._tell
            )
        except CannotLoad as error:
            return self._tell(EngineFault("engine", str(error)))
        for fault in self._action_host.faults:
            self._tell(fault)
        self.windows = {one.key: self.windows.get(one.key, Window()) for one in self._action_host.watchers}
        self._watching = [
            asyncio.create_task(self._watch(one), name=f"watcher {one.name}")
            for one in self._action_host.watchers
        ]
        return None

    async def _watch(self, watcher: Watcher) -> None:
        """Ask it again and again, for ever."""
        while True:
            pause = watcher.interval if await self._look(watcher) else max(watcher.interval, RETRY)
            await wait_within(watcher.nudge, pause)
            watcher.nudge.clear()

    async def _look(self, watcher: Watcher) -> bool:
        try:
            async with asyncio.timeout(watcher.timeout):
                reading = await watcher.collect()
        except (PulseError, TimeoutError) as error:
            self._tell(EngineFault(f"watcher:{watcher.name}", str(error) or "did not answer in time"))
            return False
        window = self.windows[watcher.key]
        number = window.last.id + 1 if window.last else 1
        sample = Sample(number, watcher.key, self._clock.now(), reading.data)
        self.windows[watcher.key] = window = window.plus(sample)
        self._tell(SampleTaken(watcher.name, sample, number == 1 or watcher.should_wake(window)))
        return True

    async def execute(self, effect: Effect) -> str:
        """Carry out what only staging can; what came of it. Nothing is recorded."""
        executor = self.executors[effect.action]
        try:
            params = executor.params.model_validate(effect.params)
            async with asyncio.timeout(executor.policy(params).timeout):
                result = await executor.execute(effect, params, self._event(effect))
        except Unsure as error:  # which is no PulseError, so that nobody takes it for a failure
            return f"{effect.key} may have been done, here and unrecorded: {error}"
        except (PulseError, TimeoutError, ValidationError) as error:
            return f"{effect.key} failed, here and unrecorded: {error or 'it took too long'}"
        return f"{effect.key} was done, here and unrecorded: {dict(result.data)}"

    def _event(self, effect: Effect) -> Event:
        moment = self._clock.now()
        return Event(0, "staging", *moment, effect.kind, effect.key, "staging", "here", None, encode(effect))

    async def close(self) -> None:
        """End all that runs, and forget what was sensed."""
        await self._end()
        self.windows = {}

    async def _end(self) -> None:
        watching, self._watching = self._watching, []
        for task in watching:
            task.cancel()
        await asyncio.gather(*watching, return_exceptions=True)
        action_host, self._action_host = self._action_host, None
        if action_host:
            await action_host.close()


def merge_windows(recorded: Mapping[str, Window], own: Mapping[str, Window]) -> Mapping[str, Window]:
    """The windows that staging's rules see: those of the daemon, and over them what staging senses itself."""
    return {**recorded, **{key: window for key, window in own.items() if window.samples}}
