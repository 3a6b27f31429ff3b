"""A machine in memory, and executors that act on it, or only write down that they acted."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pydantic import BaseModel, ConfigDict

from pulse_core.model.event import Event
from pulse_core.model.json_types import Json
from pulse_core.model.kinds import Effect
from pulse_core.ports.executor import NotYet, Policy, Result, Safety, Slot
from pulse_core.ports.health import HealthAnswer
from pulse_core.ports.host import ProcessId, ProcessObservation
from pulse_core.settings.processes import ProcessSettings


@dataclass
class MemoryProcess:
    """A live process, and whether it answers at its port."""

    found: ProcessId
    answering: bool = True


@dataclass
class MemoryHost:
    """Implements `pulse_core.ports.ProcessTable` and `HealthProber`.

    processes: the live ones by the name in the settings; dying: names whose processes die at their start;
    unresponsive: names whose processes never answer; intended: names that their own manager was told to stop; starts:
    each start, as (name, ProcessId); started_twice: names that were started while they lived; busy: names that their
    manager is at work on; ended: those that an executor ended; stubborn: names whose processes take so many seconds to end.
    """

    processes: dict[str, MemoryProcess] = field(default_factory=dict)
    dying: set[str] = field(default_factory=set)
    unresponsive: set[str] = field(default_factory=set)
    intended: set[str] = field(default_factory=set)
    starts: list[tuple[str, ProcessId]] = field(default_factory=list)
    started_twice: list[str] = field(default_factory=list)
    busy: set[str] = field(default_factory=set)
    ended: set[ProcessId] = field(default_factory=set)
    stubborn: dict[str, float] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    says: dict[str, HealthAnswer] = field(default_factory=dict)
    silent: set[str] = field(default_factory=set)
    beside: dict[str, str] = field(default_factory=dict)
    left: dict[str, tuple[ProcessId, ...]] = field(default_factory=dict)
    printed: dict[str, str] = field(default_factory=dict)
    _next: int = 100
    _held: dict[ProcessId, Callable[[ProcessId], None]] = field(default_factory=dict)
    _reported: set[ProcessId] = field(default_factory=set)

    def start(self, name: str) -> ProcessId:
        """Start a process; one of `dying` is dead at once."""
        self._next += 1
        found = ProcessId(self._next, round(asyncio.get_running_loop().time() * 100))
        self.starts.append((name, found))
        self.intended.discard(name)
        if name in self.processes:
            self.started_twice.append(name)
        if name not in self.dying:
            self.processes[name] = MemoryProcess(found, name not in self.unresponsive)
        return found

    def kill(self, name: str) -> None:
        """End the process as SIGKILL would; whoever holds it hears of it soon."""
        if process := self.processes.pop(name, None):
            self._report_death(process.found)

    def end(self, name: str) -> None:
        """End the process as an executor does."""
        if process := self.processes.get(name):
            self.ended.add(process.found)
        self.kill(name)

    def has_ended(self, found: ProcessId) -> bool:
        return found in self.ended

    def has_killed(self, found: ProcessId) -> bool:
        return False

    def _report_death(self, found: ProcessId) -> None:
        if died := self._held.pop(found, None):
            self._reported.add(found)
            asyncio.get_running_loop().call_soon(died, found)

    async def look(
        self, processes: Sequence[ProcessSettings], known: Mapping[str, ProcessId]
    ) -> Mapping[str, ProcessObservation]:
        return {process.name: self._observation(process, known.get(process.name)) for process in processes}

    def _observation(self, process: ProcessSettings, known: ProcessId | None) -> ProcessObservation:
        live, busy = self.processes.get(process.name), process.name in self.busy
        if live is None:
            ended = "was killed" if known else ""
            answering, intended = False if process.tcp else None, process.name in self.intended
            return ProcessObservation((), answering, False, intended, busy, ended=ended)
        answering = live.answering if process.tcp and known != live.found else None
        return ProcessObservation((live.found,), answering, known == live.found)

    def ask(self, process: ProcessSettings, found: ProcessId | None) -> "asyncio.Future[HealthAnswer]":
        loop = asyncio.get_running_loop()
        coming: asyncio.Future[HealthAnswer] = loop.create_future()
        self.asked.append(process.name)
        if process.name not in self.silent:
            loop.call_later(0.001, lambda: coming.set_result(self._answer(process)))
        return coming

    def _answer(self, process: ProcessSettings) -> HealthAnswer:
        live = self.processes.get(process.name)
        is_well = live is not None and live.answering
        usual = HealthAnswer(is_well, f"it {'answers' if is_well else 'does not answer'}")
        return self.says.get(process.name, usual)

    def hold(self, found: Iterable[ProcessId], died: Callable[[ProcessId], None]) -> None:
        wanted = set(found)
        self._reported &= wanted
        self._held = dict.fromkeys(wanted - self._reported, died)
        living = {process.found for process in self.processes.values()}
        for one in set(self._held) - living:
            self._report_death(one)

    async def others(
        self, processes: Sequence[ProcessSettings], mains: Mapping[str, ProcessId | None]
    ) -> Mapping[str, str]:
        return {process.name: words for process in processes if (words := self.beside.get(process.name))}

    def leftovers(self, mains: Mapping[str, ProcessId | None]) -> Mapping[str, tuple[ProcessId, ...]]:
        return {name: self.left[name] for name in mains if name in self.left}

    def unlogged(self, found: ProcessId) -> str:
        return ""

    async def last_lines(self, process: ProcessSettings, found: ProcessId, since: int) -> str:
        return self.printed.get(process.name, "")[since:]


async def at_once(event: Event) -> None:
    """An action that takes no time and always works."""


@dataclass
class MemoryExecutor:
    """Implements `pulse_core.ports.Executor`: does `deed` and keeps the ids of effects.

    began and done differ where a deed was cut off; `verify` answers from `done`, as one who can look.
    """

    action: str = "note"
    rule: Policy = field(default_factory=lambda: Policy(Safety.IDEMPOTENT, retries=2))
    deed: Callable[[Event], Awaitable[None]] = at_once
    began: list[str] = field(default_factory=list)
    done: list[str] = field(default_factory=list)

    class Params(BaseModel):
        """Anything goes."""

        model_config = ConfigDict(extra="allow")

    @property
    def params(self) -> type[BaseModel]:
        return self.Params

    def policy(self, params: Any) -> Policy:
        return self.rule

    def check(self, params: Any) -> None:
        return None

    async def execute(self, effect: Effect, params: Any, event: Event) -> Result:
        self.began.append(event.id)
        await self.deed(event)
        self.done.append(event.id)
        return Result(await self.outcome(effect))

    async def outcome(self, effect: Effect) -> dict[str, Json]:
        """What an acked effect says of its result."""
        return {}

    async def verify(self, effect: Effect, params: Any, event: Event) -> Result | None:
        return Result({"seen": True}) if event.id in self.done else None


@dataclass
class MemoryRestart(MemoryExecutor):
    """`restart-process` on a MemoryHost; spawning takes `seconds`."""

    action: str = "restart-process"
    rule: Policy = field(default_factory=lambda: Policy(Safety.VERIFY_FIRST, outlasts_shortages=True))
    host: MemoryHost = field(default_factory=MemoryHost)
    seconds: float = 0.001

    class Params(MemoryExecutor.Params):
        """Anything goes beside the process, and what it depends on."""

        process: str
        needs: tuple[str, ...] = ()

    def policy(self, params: Any) -> Policy:
        return replace(self.rule, slot=Slot.NONE if params.process in self.host.processes else Slot.START)

    def check(self, params: Any) -> None:
        if gone := [name for name in params.needs if name not in self.host.processes]:
            raise NotYet(f"{params.process} waits for {', '.join(gone)}, on which it depends")

    async def outcome(self, effect: Effect) -> dict[str, Json]:
        await asyncio.sleep(self.seconds)
        name = str(effect.params["process"])
        process = self.host.processes.get(name)
        if effect.params.get("if_dead") and process and process.answering:
            return {"already": True, "pid": process.found.pid, "started": process.found.started}
        if process and name in self.host.stubborn:
            await asyncio.sleep(self.host.stubborn[name])
        self.host.end(name)
        found = self.host.start(name)
        return {"pid": found.pid, "started": found.started, "logged": 0}


@dataclass
class MemoryStop(MemoryExecutor):
    """`stop-process` on a MemoryHost."""

    action: str = "stop-process"
    host: MemoryHost = field(default_factory=MemoryHost)

    async def outcome(self, effect: Effect) -> dict[str, Json]:
        self.host.end(str(effect.params["process"]))
        return {}
