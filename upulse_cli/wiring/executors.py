"""What senses and acts on this machine: the capabilities' watchers, the executors, and the processes that they hold."""

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from types import ModuleType

from pulse_adapters.files.executors import ArchiveSessions, CleanPaths
from pulse_adapters.host.clock import SystemClock
from pulse_adapters.host.life_groups import LifeGroups
from pulse_adapters.host.lives import Lives
from pulse_adapters.host.marked_processes import HomeMarks
from pulse_adapters.host.memory_consumers import MemoryConsumers
from pulse_adapters.host.process_executors import Probe, RestartProcess, StopProcess, nobody_probes
from pulse_adapters.host.process_table import LinuxProcessTable
from pulse_adapters.host.programs import LifePrograms
from pulse_adapters.host.run_command import Collect, RunCommand
from pulse_adapters.host.spawner import Spawner
from pulse_adapters.ipc.log_name import is_held
from pulse_adapters.notify.executor import ChildTransport, Notify
from pulse_adapters.workers.home_folder import HomeFolder
from pulse_adapters.workers.host_groups import host_group
from pulse_adapters.workers.proc import TICKS_PER_SECOND, ticks_now
from pulse_core.capabilities import capability_modules
from pulse_core.capability import Capability, ExecutorContext, Scope, Scopes, WatcherContext
from pulse_core.composition import LOADED
from pulse_core.execute.on_demand import ExecutorOnDemand
from pulse_core.home import HomeLayout
from pulse_core.model.errors import PulseError
from pulse_core.model.event import Draft, Event
from pulse_core.model.memo import Memo
from pulse_core.model.moment import US_PER_SECOND
from pulse_core.ports.executor import Executor
from pulse_core.ports.host import Life, ProcessId
from pulse_core.ports.watcher import Watcher
from pulse_core.projections.processes import SYSTEMD, ProcessHistory
from pulse_core.projections.state import State
from pulse_core.settings.settings import Settings


def watchers_of(context: WatcherContext) -> Sequence[Watcher]:
    """The capabilities' watchers: those that the core makes, and those of their adapters."""
    made = [watcher for capability in LOADED for watcher in capability.watchers(context)]
    return (*made, *(watcher for part in adapters("watchers") for watcher in part.watchers(context)))


def needed_watchers_of(context: WatcherContext) -> Sequence[Watcher]:
    """Those of adapters that watch what Pulse itself has begun: where they are left out, it must begin nothing."""
    return [watcher for part in adapters("needed_watchers") for watcher in part.needed_watchers(context)]


def scope_of(context: WatcherContext) -> Scopes:
    """What a caller of the socket is bound to, as the capabilities' adapters say."""
    finders: Sequence[Scopes] = [part.scopes(context) for part in adapters("scopes")]

    async def scope(pid: int, uid: int, token: str) -> Scope | None:
        for find in finders:
            if found := await find(pid, uid, token):
                return found
        return None

    return scope


def group_sockets_of(context: WatcherContext) -> Mapping[Path, int]:
    """Sockets at which only who says a token is answered, each with its group, as the capabilities' adapters say."""
    return {path: group for part in adapters("sockets") for path, group in part.sockets(context).items()}


def executors_of(context: ExecutorContext) -> Sequence[Executor]:
    """The capabilities' executors: those of one are made, by the core and its adapter, when one of them is first needed."""
    return [
        ExecutorOnDemand(action, made)
        for capability in LOADED
        for made in [cache(partial(made_executors, capability, context))]
        for action in capability.actions
    ]


def made_executors(capability: Capability, context: ExecutorContext) -> Mapping[str, Executor]:
    """The executors of a capability by their actions; raises TypeError if they are not those whose actions it declares."""
    parts = [part for part in adapters("executors") if part.__name__ == f"pulse_adapters.{capability.name}"]
    makers = (capability.executors, *(part.executors for part in parts))
    made = {one.action: one for make in makers for one in make(context)}
    if differing := made.keys() ^ {action.name for action in capability.actions}:
        raise TypeError(
            f"an action is declared by a capability and made by its adapter; not so {sorted(differing)}"
        )
    return made


def adapters(part: str) -> Iterator[ModuleType]:
    """The packages `pulse_adapters.NAME` of capabilities that have one, with this function."""
    return (module for module in capability_modules("pulse_adapters") if hasattr(module, part))


Append = Callable[[Draft], Awaitable[Event]]


async def cannot_append(draft: Draft) -> Event:
    """Where no daemon runs, executors record nothing."""
    raise PulseError(f"only a running daemon records {draft.payload.kind!r} for an executor")


def is_log_served(identity: str) -> bool:
    """Whether a daemon of this user runs that has the log with this identity."""
    return is_held(identity.partition(".")[0])


def _ticks_of(first: Event | None, boot: str) -> int:
    """When a log was begun, in clock ticks after boot: now, if it has no row yet."""
    if first is None:
        return ticks_now()
    return first.mono * TICKS_PER_SECOND // US_PER_SECOND if first.boot == boot else 0


Failed = Callable[[str, str], None]
"""Is told whose failure it was, and what failed."""


@dataclass(frozen=True)
class MachineExecutors:
    """What acts on this machine, and the executors made of it."""

    spawner: Spawner
    table: LinuxProcessTable
    consumers: MemoryConsumers
    notify: Notify
    lives: Lives
    programs: LifePrograms
    known: Callable[[], Mapping[str, ProcessId]]
    executors: Mapping[str, Executor]

    def close(self) -> None:
        """Let go of the processes; they live on."""
        self.table.close()
        self.programs.close()
        self.lives.close()
        self.spawner.close()


def machine_executors(
    home: HomeLayout,
    current_settings: Callable[[], Settings],
    view: Callable[[], State],
    failed: Failed = lambda whose, words: None,
    append: Append = cannot_append,
    identity: str = "",
    first: Event | None = None,
    folder: HomeFolder | None = None,
    probe: Probe = nobody_probes,
) -> MachineExecutors:
    """Everything that can act on the processes of this machine, and tell its people.

    append: of the daemon that runs; identity: of the home's log, where that is open; first: its first row, None if
    it has none yet; folder: of the home, if it may be moved meanwhile; probe: asks a process whether it serves.
    """
    spawner = Spawner(folder.current) if folder else Spawner()
    notify = Notify(current_settings, ChildTransport(), SystemClock(), failed, view=view)
    boot = SystemClock().now().boot

    def lives_in(histories: Mapping[str, ProcessHistory]) -> Mapping[str, Life]:
        return {
            name: Life(start.effect, ProcessId(start.pid, start.started), start.settings)
            for name, history in histories.items()
            if (start := history.start) is not None and history.boot == boot
        }

    def known_in(histories: Mapping[str, ProcessHistory]) -> Mapping[str, ProcessId]:
        return {
            name: ProcessId(history.pid, history.started)
            for name, history in histories.items()
            if history.pid is not None and history.started is not None and history.boot == boot
        }

    last_lives, last_known = Memo(lives_in), Memo(known_in)

    def lives() -> Mapping[str, Life]:
        return last_lives(view().processes.of)

    def known() -> Mapping[str, ProcessId]:
        return last_known(view().processes.of)

    def is_up(name: str) -> bool:
        return view().processes[name].up is not None

    def stopped_by(name: str) -> str:
        stop = view().processes[name].stop
        return stop.by if stop and stop.by != SYSTEMD and stop.holds(SystemClock().now()) else ""

    def knows(effect: str) -> bool:
        return effect in view().restarts_begun or any(life.effect == effect for life in lives().values())

    marks = HomeMarks(home.path, identity, _ticks_of(first, boot) if identity else 0, knows, is_log_served)
    groups = LifeGroups(home.path, marks, spawner.effect_of, failed)
    guarded = lambda: current_settings().process  # noqa: E731
    begun = lambda: view().restarts_begun  # noqa: E731
    last = Lives(spawner, home.path, lives, groups, known, begun, guarded, marks)
    programs = LifePrograms(spawner, groups)
    table = LinuxProcessTable(spawner, home.path, last, guarded, home.outputs)
    consumers = MemoryConsumers(current_settings, known, lambda: spawner.running)
    made: Sequence[Executor] = (
        RestartProcess(current_settings, table, known, last, home.outputs, is_up, probe, stopped_by),
        StopProcess(current_settings, table, known, last),
        RunCommand(current_settings, spawner),
        CleanPaths(current_settings, home.outputs / "cleaned.jsonl", home.path),
        ArchiveSessions(current_settings, home.path / "archive", home.path),
        Collect("upulse_cli.wiring.bundle", home.path, partial(host_group, home.path)),
        notify,
        *executors_of(ExecutorContext(current_settings, view, append, programs, home)),
    )
    return MachineExecutors(
        spawner,
        table,
        consumers,
        notify,
        last,
        programs,
        known,
        {executor.action: executor for executor in made},
    )
