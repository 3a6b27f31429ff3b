"""Programs in memory, which end when a test says so."""

import asyncio
from collections.abc import Callable, Collection, Sequence, Set
from dataclasses import dataclass, field

from pulse_core.model.errors import PulseError
from pulse_core.ports.host import ProcessId
from pulse_core.ports.programs import OrphanProgram, ProgramObservation, ProgramSpec


@dataclass
class MemoryPrograms:
    """Implements `pulse_core.ports.Programs`.

    started: each start, as (effect, program); live: main processes by effect; exits: exit codes by main process, lost by
    `forget`, as a restart of the daemon does; stopped, paused: effects that were stopped, or are held; refusal: why nothing
    can be started; immortal: nothing can be stopped; unlimited: why limits have no effect; left: orphans.
    """

    started: list[tuple[str, ProgramSpec]] = field(default_factory=list)
    live: dict[str, ProcessId] = field(default_factory=dict)
    exits: dict[ProcessId, int] = field(default_factory=dict)
    stopped: list[str] = field(default_factory=list)
    paused: set[str] = field(default_factory=set)
    memory: int = 1 << 20
    left: list[OrphanProgram] = field(default_factory=list)
    refusal: str = ""
    immortal: bool = False
    unlimited: str = ""
    _calls: list[Callable[[], None]] = field(default_factory=list)
    _next: int = 1_000

    async def start(self, effect: str, program: ProgramSpec) -> ProcessId:
        if self.refusal:
            raise PulseError(self.refusal)
        self._next += 1
        main = self.live[effect] = ProcessId(self._next, round(asyncio.get_running_loop().time() * 100))
        self.started.append((effect, program))
        return main

    async def limits_fault(self) -> str:
        return self.unlimited

    async def find(self, effect: str) -> ProcessId | None:
        return self.live.get(effect)

    def effects_of(self, pid: int) -> Set[str]:
        return {effect for effect, main in self.live.items() if main.pid == pid}

    async def look(self, main: ProcessId) -> ProgramObservation:
        if main in self.live.values():
            return ProgramObservation(True, None, self.memory, 1)
        return ProgramObservation(False, self.exits.get(main))

    async def pause(self, effect: str, main: ProcessId, over: bool = False) -> None:
        if effect in self.live:
            (self.paused.discard if over else self.paused.add)(effect)

    async def stop(self, effect: str, main: ProcessId, soft: float) -> None:
        self.stopped.append(effect)
        if self.immortal:
            raise PulseError(f"process {main.pid} may not be ended by the user Pulse runs as")
        if effect in self.live:
            self.end(effect, -15)

    def end(self, effect: str, code: int = 0) -> None:
        """End a program with this exit code; whoever listens hears of it."""
        self.exits[self.live.pop(effect)] = code
        self._tell()

    async def orphans(self, home: str, users: Collection[str]) -> Sequence[OrphanProgram]:
        return [one for one in self.left if one.effect in self.live]

    def watch(self, main: ProcessId) -> None:
        self._tell()

    def forget(self) -> None:
        """Lose what a daemon that ends loses: exit codes, and who listens."""
        self.exits.clear()
        self._calls.clear()

    def listen(self, call: Callable[[], None]) -> None:
        self._calls.append(call)

    def _tell(self) -> None:
        for call in self._calls:
            call()
