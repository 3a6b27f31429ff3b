"""A machine in memory: processes that live, die, hang and are started again, as a test says."""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from pulse_core.ports.host import ProcessId, ProcessObservation
from pulse_core.settings.processes import ProcessSettings


@dataclass
class MemoryProcess:
    """A live process, and whether it answers at its port."""

    found: ProcessId
    answering: bool = True


@dataclass
class MemoryHost:
    """Implements `pulse_core.ports.ProcessTable`.

    processes: the live ones by the name in the settings; dying: names whose processes die at their start;
    unresponsive: names whose processes never answer; intended: names that their own manager was told to stop; starts:
    each start, as (name, ProcessId); started_twice: names that were started while they lived; busy: names that their
    manager is at work on.
    """

    processes: dict[str, MemoryProcess] = field(default_factory=dict)
    dying: set[str] = field(default_factory=set)
    unresponsive: set[str] = field(default_factory=set)
    intended: set[str] = field(default_factory=set)
    starts: list[tuple[str, ProcessId]] = field(default_factory=list)
    started_twice: list[str] = field(default_factory=list)
    busy: set[str] = field(default_factory=set)
    _next: int = 100
    _held: dict[ProcessId, Callable[[ProcessId], None]] = field(default_factory=dict)

    def start(self, name: str) -> ProcessId:
        """Start a process; one of `dying` is dead at once."""
        self._next += 1
        found = ProcessId(self._next, self._next * 10)
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

    def _report_death(self, found: ProcessId) -> None:
        if died := self._held.pop(found, None):
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
        answering = live.answering if process.tcp else None
        return ProcessObservation((live.found,), answering, known == live.found)

    def hold(self, found: Iterable[ProcessId], died: Callable[[ProcessId], None]) -> None:
        self._held = dict.fromkeys(found, died)
        living = {process.found for process in self.processes.values()}
        for one in set(self._held) - living:
            self._report_death(one)
