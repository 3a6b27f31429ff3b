"""Programs that Pulse starts and that outlive it, each with all that comes out of it."""

from collections.abc import Callable, Collection, Mapping, Sequence, Set
from typing import NamedTuple, Protocol

from pulse_core.ports.host import ProcessId


class ProgramSpec(NamedTuple):
    """What to start. env: its whole environment; stdin: the file that it reads; output: the file that it appends to.

    user: whom it runs as, empty for the daemon's own; status: the file to which its exit status is written, if any, so that
    a daemon that did not start it learns it; output_limit: bytes that it may print, 0 for any number, of which
    one more is written and no other. What all that comes out of it may have together, 0 for any amount:
    memory in bytes, processes with threads, cpu_weight against 100 of others.
    """

    argv: Sequence[str]
    cwd: str
    env: Mapping[str, str]
    output: str
    stdin: str = "/dev/null"
    user: str = ""
    memory: int = 0
    processes: int = 0
    cpu_weight: int = 0
    status: str = ""
    output_limit: int = 0


class ProgramObservation(NamedTuple):
    """How a program is. exit: its exit code once it has ended, negative for a signal, None if nobody knows it; memory:
    resident bytes of all that came out of it, which are so many processes; cpu_us: the time that they have computed; pid: of
    the program itself, which is not the main process where that writes down its exit status."""

    alive: bool
    exit: int | None = None
    memory: int = 0
    processes: int = 0
    cpu_us: int = 0
    pid: int = 0


class OrphanProgram(NamedTuple):
    """A process without a terminal whose parent, with which it came out of what the effect began, is gone. agent: its
    PULSE_AGENT, empty if it shows none; memory: resident bytes of it and its descendants."""

    pid: int
    started: int
    effect: str
    agent: str
    age_us: int
    memory: int = 0


class Programs(Protocol):
    """Starts programs without a shell, each as a life of its own: what comes out of it is known by session, by the mark of
    the effect that began it, and by its control group where there are any.

    `main` is who `start` returned; a daemon that starts later knows it from the log.
    """

    async def start(self, effect: str, program: ProgramSpec) -> ProcessId:
        """Start it; raises PulseError if that can't be done."""

    async def limits_fault(self) -> str:
        """Why what a program may have can't be limited here; empty if it can."""

    async def find(self, effect: str) -> ProcessId | None:
        """The live main process of what this effect began, also by an earlier daemon."""

    def effects_of(self, pid: int) -> Set[str]:
        """The effects that began what a process came out of, as its control groups and its mark show."""

    async def look(self, main: ProcessId) -> ProgramObservation:
        """How it is now."""

    def watch(self, main: ProcessId) -> None:
        """Tell who listens that there is something to look at: now, and when it ends."""

    async def pause(self, effect: str, main: ProcessId, over: bool = False) -> None:
        """Hold all that came out of it by SIGSTOP; over: have it go on. Does nothing to what has ended."""

    async def stop(self, effect: str, main: ProcessId, soft: float) -> None:
        """End all that came out of it: SIGTERM to the main process' group, a wait of `soft` seconds, then SIGKILL.

        Does nothing if nothing is left. Raises PulseError if something can't be ended.
        """

    async def orphans(self, home: str, users: Collection[str]) -> Sequence[OrphanProgram]:
        """Those that bear the marks of an agent of this home (UPULSE_HOME), or are in a control group of a life of this
        home, of these users; an empty name: the own one.

        The main process of a program that runs is among them, and by its group that of a guarded process.
        """

    def listen(self, call: Callable[[], None]) -> None:
        """Call this whenever `watch` says so."""
