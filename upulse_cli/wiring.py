"""Which adapters are real: the one place that joins the core to this machine."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from random import Random

from pulse_adapters.config.file import load, load_to_start
from pulse_adapters.config.home import Home
from pulse_adapters.files.archive_sessions import ArchiveSessions
from pulse_adapters.files.clean_paths import CleanPaths
from pulse_adapters.host.clock import SystemClock
from pulse_adapters.host.collect import Collect
from pulse_adapters.host.consumers import Consumers
from pulse_adapters.host.restart_process import RestartProcess
from pulse_adapters.host.run_command import RunCommand
from pulse_adapters.host.spawn import Spawner
from pulse_adapters.host.stop_process import StopProcess
from pulse_adapters.host.system import Before, SystemResource
from pulse_adapters.host.table import LinuxProcessTable
from pulse_adapters.ipc.lock import HomeLock
from pulse_adapters.logs.reader import FollowedLogs
from pulse_adapters.network.prober import ChildProber
from pulse_adapters.notify.courier import ChildCourier
from pulse_adapters.notify.executor import Notify
from pulse_adapters.objects.files import FileObjects
from pulse_adapters.sqlite.checkpoints import SqliteCheckpoints
from pulse_adapters.sqlite.events import SqliteEventLog, new_id
from pulse_adapters.sqlite.garbage import NamedObjects
from pulse_adapters.sqlite.opening import Opening
from pulse_adapters.sqlite.vitals import SqliteVitals
from pulse_adapters.systemd.notify import Notifier
from pulse_core import __version__
from pulse_core.daemon import Daemon, Decisions, Desk, Parts, Service
from pulse_core.engine.surroundings import EngineParts
from pulse_core.model.event import Draft
from pulse_core.model.kinds import ErrorReported
from pulse_core.model.vitals import Window
from pulse_core.ports import Executor, Found, Prober, Watcher
from pulse_core.record.view import View
from pulse_core.watch.error_log import ErrorLog
from pulse_core.watch.llm import Llm
from pulse_core.watch.network import Network
from upulse_cli.answering import Served, answer, with_faults
from upulse_cli.companions import companions
from upulse_cli.damage import refuse_lost_rows
from upulse_cli.deep_check import deep_check
from upulse_cli.logs import Narrator, sense_aloud
from upulse_cli.room import keep_room
from upulse_cli.sweeping import Broom

LOOK = 3.0
"""Seconds between two looks at whether the lock's file is still there."""

FIRST_LOOK = 2.0
"""Seconds for which a start waits until it is known what the followed logs hold: what is written later is news."""

Failed = Callable[[str, str], None]
"""Is told whose failure it was, and what failed."""


@dataclass(frozen=True)
class Hands:
    """What acts on this machine, and the executors made of it."""

    spawner: Spawner
    table: LinuxProcessTable
    consumers: Consumers
    notify: Notify
    executors: Mapping[str, Executor]

    def close(self) -> None:
        """Let go of the processes; they live on."""
        self.table.close()
        self.spawner.close()


def hands(home: Home, decisions: Decisions, view: View, failed: Failed = lambda whose, words: None) -> Hands:
    """Everything that can act on the processes of this machine, and tell its people."""
    spawner, notify = Spawner(), Notify(decisions, ChildCourier(), SystemClock(), failed)
    table = LinuxProcessTable(spawner, home=home.path, failed=failed)
    boot = SystemClock().now().boot

    def known() -> Mapping[str, Found]:
        return {
            name: Found(history.pid, history.started)
            for name, history in view().processes.of.items()
            if history.pid is not None and history.started is not None and history.boot == boot
        }

    consumers = Consumers(decisions, known, lambda: spawner.running)
    made: Sequence[Executor] = (
        RestartProcess(decisions, table, known, spawner, home.outputs),
        StopProcess(decisions, table, known, spawner),
        RunCommand(decisions, spawner),
        CleanPaths(decisions, spawner, home.outputs / "cleaned.jsonl", home.path),
        ArchiveSessions(decisions, spawner, home.path / "archive", home.path),
        Collect(spawner, lambda name, why: bundling(home, name, why)),
        notify,
    )
    return Hands(spawner, table, consumers, notify, {executor.action: executor for executor in made})


def bundling(home: Home, name: str, why: str) -> Sequence[str]:
    """The argv of the child that writes a diagnostic bundle."""
    return (
        sys.executable,
        "-P",
        "-m",
        "upulse_cli.bundle",
        "--home",
        str(home.path),
        "--name",
        name,
        f"--why={why}",
    )


@dataclass(frozen=True)
class Ground:
    """What the parts of one daemon share. faults: of its settings, such as keep no daemon from starting."""

    home: Home
    clock: SystemClock
    objects: FileObjects
    view: View
    decisions: Decisions
    faults: Sequence[str]


def ground_of(home: Home) -> Ground:
    """The ground of a daemon that starts; raises SettingsRefused. Later settings must be without any fault."""
    settings, faults = load_to_start(home.config)
    first = [settings]
    decisions = Decisions(lambda: first.pop() if first else load(home.config))
    return Ground(home, SystemClock(), FileObjects(home.objects), View(), decisions, faults)


@asynccontextmanager
async def real_daemon(
    home: Home, how: Opening, news: Sequence[Draft] = (), lock: HomeLock | None = None
) -> AsyncIterator[Daemon]:
    """A daemon on this machine, its stores open, with what the start has to say. The caller holds the lock."""
    ground = ground_of(home)
    daemon: Daemon

    def failed(whose: str, words: str) -> None:
        daemon.reporter(whose, words)

    acting = hands(home, ground.decisions, ground.view, failed)
    system = SystemResource(
        ground.decisions,
        lambda: daemon.housekeeping.lateness() * 1000,
        acting.spawner,
        acting.consumers,
        Before(ground.view, lambda: daemon.watch.windows.get(SystemResource.key, Window())),
    )
    async with AsyncExitStack() as stack:
        stack.callback(acting.close)
        log = await stack.enter_async_context(narrated_log(ground, how))
        await stack.enter_async_context(system)
        vitals = await stack.enter_async_context(SqliteVitals.open(home.vitals))
        parts = parts_of(ground, acting, log, vitals)
        services = {
            **services_of(ground, log, acting.spawner, lock, failed),
            **companions(home, ground.decisions, lambda seconds: daemon.is_turning(seconds), failed),
            "room": lambda desk, begun: later(begun, keep_room(home, vitals, ground.decisions, failed)),
        }
        stack.callback((logs := FollowedLogs(failed)).close)
        services |= knowing(ground, logs)
        stack.callback((prober := ChildProber()).close)
        network = network_senses(prober, ground, lambda: daemon.watch.windows)
        error_log = ErrorLog(logs, ground.clock, ground.decisions, ground.view, vitals.newest)
        daemon = Daemon(
            replace(
                parts,
                watchers=(system, error_log, *network),
                services=services,
                news=(*news, *torn(log)),
                engine=engine_of(ground, lambda: daemon.watch.windows, failed),
            )
        )
        daemon.journal.listen_once(acting.notify.hear)
        yield daemon


def knowing(ground: Ground, logs: FollowedLogs) -> Mapping[str, Service]:
    """Holds up a start until it is known what the followed logs hold; nothing where none are followed."""
    if not ground.decisions().log:
        return {}
    return {"logs": lambda desk, begun: after(logs.standing(FIRST_LOOK), begun)}


@asynccontextmanager
async def narrated_log(ground: Ground, how: Opening) -> AsyncIterator[SqliteEventLog]:
    """The log that the daemon writes, without rows lost unless that is accepted, and told aloud as it grows."""
    home = ground.home
    opened = SqliteEventLog.open(
        home.events, clock=ground.clock, objects=ground.objects, reserve=home.reserve, how=how
    )
    async with opened as log:
        if not how.accept_damage:
            await refuse_lost_rows(log, SqliteCheckpoints(home.state))
        log.listen(narrator := Narrator())
        try:
            yield log
        finally:
            narrator.speak()


def network_senses(
    prober: Prober, ground: Ground, windows: Callable[[], Mapping[str, Window]]
) -> Sequence[Watcher]:
    """The senses that ask the network; what has no targets asks nothing. windows: of every sense, as they are now."""

    def of(key: str) -> Callable[[], Window]:
        return lambda: windows().get(key, Window())

    return (
        Network(prober, ground.decisions, ground.view, of(Network.key)),
        Llm(prober, ground.clock, ground.decisions, ground.view, of(Llm.key)),
    )


def parts_of(ground: Ground, acting: Hands, log: SqliteEventLog, vitals: SqliteVitals) -> Parts:
    """The stores, the hands and the identity of a daemon; its watchers, services and news are still to come."""
    return Parts(
        log=log,
        vitals=vitals,
        objects=ground.objects,
        checkpoints=SqliteCheckpoints(ground.home.state),
        clock=ground.clock,
        table=acting.table,
        executors=acting.executors,
        decisions=ground.decisions,
        view=ground.view,
        lifeline=Notifier.from_environment(),
        new_id=new_id,
        dice=Random(),
        pid=os.getpid(),
        version=__version__,
        sweep=broom_of(ground, vitals),
    )


def engine_of(
    ground: Ground, windows: Callable[[], Mapping[str, Window]], failed: Failed
) -> EngineParts | None:
    """The user's rules, if the home has a repository for them. windows: of every sense, as they are now."""
    home = ground.home.path
    if not (home / "engine" / ".git").exists():
        return None
    # Imported only where there is an engine: the others need not bear it in memory.
    from pulse_adapters.git.asking import GitChild
    from pulse_adapters.hands_host.hosts import HandsHost
    from pulse_adapters.rule_host.hosts import ChildHosts
    from upulse_cli.engine.plugins import found_plugins
    from upulse_cli.engine.revisions import GitRevisions

    plugins = found_plugins()
    hands = HandsHost(ground.clock, windows, lambda fault: failed(*fault), plugins=plugins)
    return EngineParts(GitRevisions(GitChild(home), home / "revisions"), ChildHosts(plugins=plugins), hands)


def broom_of(ground: Ground, vitals: SqliteVitals) -> Broom:
    """What sweeps the home beside the loops."""
    named = NamedObjects(ground.home.events)

    def damage() -> str:
        return ground.view().control.damage

    return Broom(ground.home, ground.objects, named, vitals.unnamed, ground.decisions, damage)


def services_of(
    ground: Ground, log: SqliteEventLog, spawner: Spawner, lock: HomeLock | None, failed: Failed
) -> Mapping[str, Service]:
    """What runs beside the loops: the socket, the hold on the lock, the check of the whole log, the voice."""
    made: dict[str, Service] = {"socket": socket_service(ground, failed)}
    if lock:
        made["lock"] = lambda desk, begun: later(begun, keep_place(lock))
    made["deep check"] = lambda desk, begun: later(begun, deep_check(ground.home, log, spawner))
    if sys.stderr.isatty():
        made["voice"] = lambda desk, begun: later(begun, sense_aloud(desk))
    return made


def socket_service(ground: Ground, failed: Failed) -> Service:
    """The socket, where and to whom the settings open it; its status tells the faults that they had."""

    async def serving(desk: Desk, begun: Callable[[], None]) -> None:
        await answer(ground.home, ground.decisions, Served(with_faults(desk, ground.faults), begun, failed))

    return serving


def torn(log: SqliteEventLog) -> Sequence[Draft]:
    """The torn end of a log after a power cut, to be said."""
    return [Draft(ErrorReported(message=log.torn), subject="log")] if log.torn else []


async def keep_place(lock: HomeLock) -> None:
    """Hold on to the home's lock even if its file is removed; ends the daemon if another one has the home."""
    while True:
        await asyncio.sleep(LOOK)
        lock.keep()


async def after(work: Awaitable[None], begun: Callable[[], None]) -> None:
    """A service that serves once this work is done, and then has nothing to do."""
    await work
    begun()
    await asyncio.Event().wait()


async def later(begun: Callable[[], None], work: Awaitable[None]) -> None:
    """A service that nobody has to wait for."""
    begun()
    await work
