"""The machine's processes."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from pulse_core.model.json_types import Json
    from pulse_core.settings.processes import ProcessSettings


class ProcessId(NamedTuple):
    """A live process: its pid and its start time in clock ticks after boot, which together are its identity."""

    pid: int
    started: int


class Life(NamedTuple):
    """A start of a guarded process: the id of the effect that started it, and the process that was started.

    settings: the sum of what it was started with, as `start`; empty if nobody has recorded that.
    """

    effect: str
    found: ProcessId
    settings: str = ""


class ProcessUsage(NamedTuple):
    """What a process takes: bytes of memory, the CPU time of its life, threads, and descriptors if that may be known.

    started: in clock ticks after boot.
    """

    pid: int
    name: str
    memory: int
    cpu_us: int
    threads: int
    descriptors: int | None
    started: int = 0


class TreeUsage(NamedTuple):
    """What the processes of a tree take, oldest first."""

    processes: tuple[ProcessUsage, ...] = ()

    def as_json(self) -> "Mapping[str, Json]":
        """The sums, and each process; descriptors are None where those of none may be known."""
        known = [one.descriptors for one in self.processes if one.descriptors is not None]
        return {
            "memory": sum(one.memory for one in self.processes),
            "cpu_us": sum(one.cpu_us for one in self.processes),
            "threads": sum(one.threads for one in self.processes),
            "descriptors": sum(known) if known else None,
            "processes": [one._asdict() for one in self.processes],
        }


class ProcessObservation(NamedTuple):
    """The result of one probe of a guarded process.

    found: the live process that it is, or all that may be it (never zombies); answering: whether its port accepts,
    None if it has none to ask; known: whether the process last known to be it still lives: then it is it; intended:
    it is down, or another one is it, because its own manager was told to stop or restart it; busy: its manager is
    bringing it up just now; detail: words for the evidence; ended: how the process last known to be it has ended,
    where that can be known ("exited with status 3"); doubt: why nobody can tell which of those found it is: none of
    them may be ended; unlike: where none is found, those that match though `start` would not produce them; holder:
    who else holds its port, in words, if somebody does.
    """

    found: tuple[ProcessId, ...] = ()
    answering: bool | None = None
    known: bool = False
    intended: bool = False
    busy: bool = False
    detail: str = ""
    ended: str = ""
    doubt: str = ""
    unlike: tuple[ProcessId, ...] = ()
    holder: str = ""


class ProcessTable(Protocol):
    """Finds processes and watches for their deaths."""

    async def look(
        self, processes: "Sequence[ProcessSettings]", known: Mapping[str, ProcessId]
    ) -> Mapping[str, ProcessObservation]:
        """Probe each process; returns the observations by name.

        `known` names the process that was last known to be it (what Pulse started, or found before). It is it until
        it dies, and its death is told before anybody else is searched for.
        """

    def hold(self, found: Iterable[ProcessId], died: Callable[[ProcessId], None]) -> None:
        """Watch exactly these from now on; `died` is called within a millisecond of a death, once for each."""

    async def others(
        self, processes: "Sequence[ProcessSettings]", mains: Mapping[str, ProcessId | None]
    ) -> Mapping[str, str]:
        """By name, in words, those that match beside who stands for it now, where there are any: they are let be."""

    def leftovers(self, mains: Mapping[str, ProcessId | None]) -> Mapping[str, tuple[ProcessId, ...]]:
        """By name, the live processes of earlier lives, where there are any.

        `mains` are those who stand for it now, None for a name that nobody stands for or that is not guarded any more.
        """

    def has_ended(self, found: ProcessId) -> bool:
        """Whether Pulse itself had this very process ended, for a restart or a stop, or is just at it."""

    def has_killed(self, found: ProcessId) -> bool:
        """Whether Pulse itself killed it then, since it had not ended within its `stop_timeout`."""

    def unlogged(self, found: ProcessId) -> str:
        """Why the output of this process is not in its log, as who started it left word; empty if nobody did."""

    async def last_lines(self, process: "ProcessSettings", found: ProcessId, since: int) -> str:
        """The end of what it printed from this byte of its log on, at most 2,000 bytes.

        Secrets are hidden: of the settings, and of what this very process had in its environment while it was held.
        Empty if it printed nothing, or its log can't be read, also for a file system that does not answer at once.
        """
