"""A machine in memory: processes that live, die, hang and are born again, at the test's word."""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from pulse_core.ports import ProcessId, ProcessObservation
from pulse_core.settings import ProcessSettings


@dataclass
class Body:
    """A process: whether it answers at its port, and whether its own manager was told to stop it."""

    found: ProcessId
    answering: bool = True


@dataclass
class MemoryHost:
    """Implements `pulse_core.ports.ProcessTable`.

    bodies: the live processes by the name in the settings; doomed: names whose processes die at birth; mute:
    names whose processes never answer; intended: names that their own manager was told to stop; starts:
    every birth, as (name, Found); doubled: names that were born while they lived; busy: names that their
    manager is at work on.
    """

    bodies: dict[str, Body] = field(default_factory=dict)
    doomed: set[str] = field(default_factory=set)
    mute: set[str] = field(default_factory=set)
    intended: set[str] = field(default_factory=set)
    starts: list[tuple[str, ProcessId]] = field(default_factory=list)
    doubled: list[str] = field(default_factory=list)
    busy: set[str] = field(default_factory=set)
    _next: int = 100
    _held: dict[ProcessId, Callable[[ProcessId], None]] = field(default_factory=dict)

    def start(self, name: str) -> ProcessId:
        """Bring a process to life; a doomed one is dead at once."""
        self._next += 1
        found = ProcessId(self._next, self._next * 10)
        self.starts.append((name, found))
        self.intended.discard(name)
        if name in self.bodies:
            self.doubled.append(name)
        if name not in self.doomed:
            self.bodies[name] = Body(found, name not in self.mute)
        return found

    def kill(self, name: str) -> None:
        """End the process as SIGKILL would; whoever holds it hears of it soon."""
        if body := self.bodies.pop(name, None):
            self._mourn(body.found)

    def _mourn(self, found: ProcessId) -> None:
        if died := self._held.pop(found, None):
            asyncio.get_running_loop().call_soon(died, found)

    async def look(
        self, processes: Sequence[ProcessSettings], known: Mapping[str, ProcessId]
    ) -> Mapping[str, ProcessObservation]:
        return {process.name: self._sight(process, known.get(process.name)) for process in processes}

    def _sight(self, process: ProcessSettings, known: ProcessId | None) -> ProcessObservation:
        body, busy = self.bodies.get(process.name), process.name in self.busy
        if body is None:
            ended = "was killed" if known else ""
            answering, intended = False if process.tcp else None, process.name in self.intended
            return ProcessObservation((), answering, False, intended, busy, ended=ended)
        answering = body.answering if process.tcp else None
        return ProcessObservation((body.found,), answering, known == body.found)

    def hold(self, found: Iterable[ProcessId], died: Callable[[ProcessId], None]) -> None:
        self._held = dict.fromkeys(found, died)
        living = {body.found for body in self.bodies.values()}
        for one in set(self._held) - living:
            self._mourn(one)

    def forget_holders(self) -> None:
        """Tell nobody of deaths any more, as when the holder's process is dead."""
        self._held.clear()
