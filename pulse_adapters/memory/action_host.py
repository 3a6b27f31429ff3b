"""Action hosts in memory: the watchers and executors of an engine run right here, and only their host can end them."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, TypeVar

from pulse_core.model.errors import PulseError
from pulse_core.model.event import Event
from pulse_core.model.kinds import Effect
from pulse_core.model.vitals import Reading
from pulse_core.ports.engine import CannotLoad, EngineCodeBroken, EngineFault, ReservedNames, Revision
from pulse_core.ports.executor import Executor, GivenUp, Result, Safety, Unsure
from pulse_core.ports.watcher import Watcher

T = TypeVar("T")
Failed = Callable[[EngineFault], None]
Actions = tuple[Sequence[Watcher], Sequence[Executor]]
TAKEN = "left out: another one has this name already"


class LostWithHost(GivenUp):
    """The host was closed while a call was under way."""


@dataclass
class MemoryActionHosts:
    """Implements `ActionHosts`. engines: watchers and executors of each commit, None for one that can't be loaded."""

    engines: Mapping[str, Actions | None]
    started: list["MemoryActionHost"] = field(default_factory=list)

    async def start(
        self, revision: Revision, memory: int, taken: ReservedNames, failed: Failed
    ) -> "MemoryActionHost":
        actions = self.engines[revision.commit]
        if actions is None:
            raise CannotLoad(f"{revision.commit} can't be loaded (engine.py:1)")
        host = MemoryActionHost(actions, taken, failed)
        self.started.append(host)
        return host


class MemoryActionHost:
    """Implements `ActionHost`."""

    def __init__(self, listed: Actions, taken: ReservedNames, failed: Failed) -> None:
        self.failed, self.closed, self.is_frozen = failed, False, False
        self.watchers: list[MemoryWatcherProxy] = []
        self.executors: dict[str, MemoryExecutorProxy] = {}
        self.faults: list[EngineFault] = []
        self._calls: set[asyncio.Task[Any]] = set()
        names, keys, actions = set(taken.names), set(taken.keys), set(taken.actions)
        for watcher in listed[0]:
            if watcher.name in names or watcher.key in keys:
                self._leave_out(f"watcher:{watcher.name}", watcher.name in taken.names)
            else:
                self.watchers.append(MemoryWatcherProxy(watcher, self))
            names.add(watcher.name)
            keys.add(watcher.key)
        for executor in listed[1]:
            if executor.action in actions:
                self._leave_out(f"executor:{executor.action}", executor.action in taken.actions)
            else:
                self.executors[executor.action] = MemoryExecutorProxy(executor, self)
            actions.add(executor.action)

    def _leave_out(self, whose: str, is_foreign: bool) -> None:
        fault = EngineFault("engine", f"{whose}: {TAKEN}") if is_foreign else EngineFault(whose, TAKEN)
        self.faults.append(fault)

    async def call(self, code: Callable[[], Awaitable[T]], kind: Any, seconds: float) -> T:
        """What an author's code returned in its time, which must be of this kind.

        Raises PulseError or Unsure if it does, LostWithHost, and EngineCodeBroken for whatever else goes wrong.
        """
        if self.closed:
            raise PulseError("this action host was closed")
        task = asyncio.create_task(_run(code, kind, seconds))
        self._calls.add(task)
        task.add_done_callback(self._calls.discard)
        try:
            return await task
        except asyncio.CancelledError:
            if (caller := asyncio.current_task()) and caller.cancelling():
                raise
            if self.closed:
                raise LostWithHost("broken off: its host was closed") from None
            raise EngineCodeBroken("it cancelled itself") from None

    @asynccontextmanager
    async def frozen(self) -> AsyncIterator[None]:
        self.is_frozen = True
        try:
            yield
        finally:
            self.is_frozen = False

    def retire(self, seconds: float) -> asyncio.Future[None]:
        self._retirement = asyncio.create_task(self._retire(seconds), name="retire the action host")
        return self._retirement

    async def _retire(self, seconds: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while self._calls:
                    await asyncio.wait(self._calls)
        await self.close()

    async def close(self) -> None:
        self.closed = True
        calls = tuple(self._calls)
        for call in calls:
            call.cancel()
        await asyncio.gather(*calls, return_exceptions=True)


async def _run(code: Callable[[], Awaitable[T]], kind: Any, seconds: float) -> T:
    try:
        async with asyncio.timeout(seconds):
            result = await code()
        if not isinstance(result, kind):
            raise TypeError(f"it answers with {type(result).__name__}")
    except (PulseError, Unsure):
        raise
    except TimeoutError:
        raise EngineCodeBroken(f"was not done within {seconds:g} s") from None
    except (Exception, SystemExit, KeyboardInterrupt) as error:  # noqa: BLE001 - an author's code
        raise EngineCodeBroken(f"{type(error).__name__}: {error}") from None
    return result


class MemoryWatcherProxy:
    """Implements `Watcher`. Its code may bring samples, and conclude nothing."""

    def __init__(self, author: Watcher, host: MemoryActionHost) -> None:
        self._author, self._host = author, host
        self.name, self.key, self.interval = author.name, author.key, author.interval
        self.timeout = author.timeout + 1.0
        self.nudge, self.should_wake = author.nudge, author.should_wake

    async def collect(self) -> Reading:
        reading = await self._host.call(self._author.collect, Reading, self._author.timeout)
        if reading.conclusions:
            words = f"{len(reading.conclusions)} conclusions were dropped"
            self._host.failed(EngineFault(f"watcher:{self.name}", words))
        return Reading(reading.data)


class MemoryExecutorProxy:
    """Implements `Executor`; params, policy and check are the author's own."""

    def __init__(self, author: Executor, host: MemoryActionHost) -> None:
        self._author, self._host = author, host
        self.action, self.params = author.action, author.params
        self.policy, self.check = author.policy, author.check

    async def execute(self, effect: Effect, params: Any, event: Event) -> Result:
        policy = self.policy(params)
        try:
            return await self._host.call(
                lambda: self._author.execute(effect, params, event), Result, policy.timeout
            )
        except EngineCodeBroken as error:
            self._host.failed(EngineFault(f"executor:{self.action}", str(error)))
            raise
        except LostWithHost as error:
            if policy.safety is Safety.IDEMPOTENT:
                raise
            raise Unsure(str(error)) from None

    async def verify(self, effect: Effect, params: Any, event: Event) -> Result | None:
        seconds = self.policy(params).timeout
        try:
            return await self._host.call(
                lambda: self._author.verify(effect, params, event), Result | None, seconds
            )
        except PulseError as error:
            raise Unsure(str(error)) from None
