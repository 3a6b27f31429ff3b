"""One daemon on this machine, all of its parts joined."""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from random import Random
from typing import NamedTuple

from pulse_adapters.config.file import OWNER_ALONE, load, load_to_start
from pulse_adapters.config.home import Home
from pulse_adapters.host.clock import SystemClock
from pulse_adapters.host.command_prober import LocalCommandProber
from pulse_adapters.host.health_prober import LocalHealthProber
from pulse_adapters.host.leftovers import HomeFiles
from pulse_adapters.host.spawner import Spawner
from pulse_adapters.host.system_watcher import SystemResource
from pulse_adapters.host.usage_watcher import ProcessUsageWatcher
from pulse_adapters.ipc.lock import PATIENCE, HomeLock, LockUnusable
from pulse_adapters.ipc.log_name import hold_name
from pulse_adapters.ipc.socket_service import SocketService
from pulse_adapters.logs.reader import FollowedLogs
from pulse_adapters.metrics.sidecars import sidecars
from pulse_adapters.network.prober import ChildProber
from pulse_adapters.objects.files import FileObjects
from pulse_adapters.sqlite.checkpoints import SqliteCheckpoints
from pulse_adapters.sqlite.events import SqliteEventLog, new_id
from pulse_adapters.sqlite.lost_rows import refuse_lost_rows
from pulse_adapters.sqlite.open_log import Opening
from pulse_adapters.sqlite.reserve import SIZE, Reserve
from pulse_adapters.sqlite.vitals import SqliteVitals
from pulse_adapters.systemd.notify import Notifier
from pulse_adapters.workers.control_group import home_name, log_identity, remove_home_groups
from pulse_adapters.workers.environment import python_environment
from pulse_adapters.workers.file_threads import FileThreads
from pulse_adapters.workers.home_folder import HomeFolder
from pulse_adapters.workers.host_groups import end_hosts_left_over
from pulse_core import __version__
from pulse_core.capability import WatcherContext
from pulse_core.daemon import CurrentSettings, Daemon, Parts, Service
from pulse_core.daemon.disk_quota import keep_quota
from pulse_core.daemon.services import (
    Failed,
    LogCheck,
    SettingsService,
    check_log,
    watch_repository,
)
from pulse_core.engine.engine_context import EngineParts
from pulse_core.model.errors import PulseError
from pulse_core.model.event import Draft, Event
from pulse_core.model.kinds import ErrorReported, LogVerified
from pulse_core.model.vitals import Window
from pulse_core.ports.health import HealthAnswer, HealthProber
from pulse_core.ports.host import ProcessId
from pulse_core.ports.loops import coalesced
from pulse_core.ports.watcher import Watcher
from pulse_core.projections.conditions import DAMAGED
from pulse_core.record.view import View
from pulse_core.settings.processes import ProcessSettings
from pulse_core.watch.error_log import ErrorLog
from pulse_core.watch.network import Network
from upulse_cli.views.narrator import Narrator, sense_aloud
from upulse_cli.wiring.anchors import anchoring
from upulse_cli.wiring.engine import engine_of, repository_fault
from upulse_cli.wiring.executors import (
    MachineExecutors,
    group_sockets_of,
    machine_executors,
    needed_watchers_of,
    scope_of,
    watchers_of,
)
from upulse_cli.wiring.gc import sweeper_of

LOCK_CHECK = 3.0
"""Seconds between two checks whether the lock's file is still there."""
LONGEST_VERIFY = 6 * 3600.0
FIRST_READ = 2.0
"""Seconds for which a start waits until it is known what the followed logs hold: what is written later is news."""


class DaemonCallbacks:
    """What the parts of a daemon ask of it, which is made of them: `daemon` and `health` are set once they are."""

    daemon: Daemon
    health: HealthProber

    def failed(self, whose: str, words: str) -> None:
        """Have a failure recorded."""
        self.daemon.reporter(whose, words)

    async def changed(self, whose: str, words: str) -> None:
        """Record what was found to be changed."""
        await self.daemon.reporter.record(whose, Draft(ErrorReported(message=words), subject=whose))

    def windows(self) -> Mapping[str, Window]:
        """The present samples, by their key."""
        return self.daemon.watch.windows

    def window(self, key: str) -> Window:
        """The present samples of one key."""
        return self.windows().get(key, Window())

    def lateness_ms(self) -> float:
        """How late its loop is."""
        return self.daemon.housekeeping.lateness() * 1000

    async def is_turning(self, seconds: float) -> bool:
        """Whether its loops make progress within so many seconds."""
        return await self.daemon.is_turning(seconds)

    async def probe(self, process: ProcessSettings, found: ProcessId | None) -> HealthAnswer:
        """Ask a process whether it serves."""
        return await self.health.ask(process, found)

    async def append(self, draft: Draft) -> Event:
        """Record this as the daemon's own."""
        return await self.daemon.gate.append_own(draft)


@asynccontextmanager
async def real_daemon(
    home: Home, how: Opening, news: Sequence[Draft] = (), lock: HomeLock | None = None
) -> AsyncIterator[Daemon]:
    """A daemon on this machine, its stores open, with what the start has to say. The caller holds the lock.

    Raises SettingsRefused. Settings that are loaded later must be without any fault.
    """
    loaded, faults = load_to_start(home.config)
    # In a thread of its own: nothing waits while a large file is read.
    settings = CurrentSettings(loaded, lambda: asyncio.to_thread(load, home.config))
    clock, objects, view = SystemClock(), FileObjects(home.objects), View()
    async with AsyncExitStack() as stack:
        stack.callback(remove_home_groups, home_name(home.path))  # another one may lie there by then
        stack.callback((folder := HomeFolder(home.path)).close)
        stores = await stack.enter_async_context(open_stores(home, clock, objects, how, folder, view))
        log, vitals, identity = stores.log, stores.vitals, log_identity(stores.log.host)
        calls = DaemonCallbacks()
        failed, window = calls.failed, calls.window
        acting = machine_executors(
            home, settings, view, failed, calls.append, identity, stores.first, folder, calls.probe
        )
        stack.callback(acting.close)
        system, usage = machine_watchers(settings, acting, view, calls)
        await stack.enter_async_context(system)
        stack.callback((logs := FollowedLogs(failed)).close)
        stack.callback((prober := ChildProber()).close)
        stack.push_async_callback((commands := LocalCommandProber(acting.spawner, identity)).close)
        stack.push_async_callback((health := LocalHealthProber(acting.spawner, prober, commands)).close)
        calls.health = health
        own_files = HomeFiles(home, SIZE, Reserve(home.reserve).make, folder.is_in_place)
        damage = lambda: view().control.damage  # noqa: E731
        sweep = sweeper_of(home, objects, settings, damage, is_in_place=folder.is_in_place)
        engine = engine_of(home, clock, settings, calls.windows)
        context = WatcherContext(
            prober, commands, clock, settings, view, window, acting.programs, home, calls.append, log.listen
        )
        services: dict[str, Service] = {
            **log_services(home, log, clock, acting.spawner, view, settings, calls),
            **sidecars(home.path, settings, prober, calls.is_turning, failed),
            **engine_services(home, log, view, settings, engine, failed),
            **socket_services(home, settings, faults, context, failed),
            "room": lambda _, begun: later(
                begun, keep_quota(own_files, vitals.yield_oldest, settings, failed)
            ),
            **occasional_services(lock, logs if loaded.log else None, failed),
        }
        optional_watchers: Sequence[Watcher] = (
            ErrorLog(logs, clock, settings, view, vitals.newest),
            Network(prober, settings, view, lambda: window(Network.key)),
            *watchers_of(context),
        )
        calls.daemon = daemon = Daemon(
            Parts(
                log=log,
                vitals=vitals,
                objects=objects,
                checkpoints=stores.checkpoints,
                clock=clock,
                table=acting.table,
                health=health,
                executors=acting.executors,
                current_settings=settings,
                view=view,
                service_manager=Notifier.from_environment(),
                new_id=new_id,
                dice=Random(),
                pid=os.getpid(),
                version=__version__,
                sweep=sweep,
                end_remains=acting.lives.end_effect,
                notice_faults=acting.notify.faults,
                outputs_lost=lambda: own_files.outputs_lost,
                watchers=(system, usage, *needed_watchers_of(context)),
                optional_watchers=optional_watchers,
                services=services,
                news=(*news, *errors("log", log.torn), *errors("vitals", vitals.set_aside)),
                engine=engine,
            )
        )
        daemon.journal.listen_once(acting.notify.log_notices)
        yield daemon


class OpenStores(NamedTuple):
    """What a daemon records in, open; first: the log's first row, None if it has none yet."""

    log: SqliteEventLog
    checkpoints: SqliteCheckpoints
    vitals: SqliteVitals
    first: Event | None


@asynccontextmanager
async def open_stores(
    home: Home, clock: SystemClock, objects: FileObjects, how: Opening, folder: HomeFolder, view: View
) -> AsyncIterator[OpenStores]:
    """The stores of a home whose log no other daemon has under its name."""
    async with AsyncExitStack() as stack:
        log = await stack.enter_async_context(narrated_log(home, clock, objects, how, view))
        stack.callback((await hold_name(str(home.path), log.host, PATIENCE)).close)
        checkpoints = SqliteCheckpoints(home.state, log.host, folder.is_in_place)
        await checkpoints.tell_host()
        rows = [one async for batch in log.since(0, upto=1) for one in batch]
        vitals = await stack.enter_async_context(SqliteVitals.open(home.vitals))
        yield OpenStores(log, checkpoints, vitals, rows[0] if rows else None)


def machine_watchers(
    settings: CurrentSettings, acting: MachineExecutors, view: View, calls: DaemonCallbacks
) -> tuple[SystemResource, ProcessUsageWatcher]:
    """What measures the machine, and what the guarded processes take of it."""
    window = partial(calls.window, SystemResource.key)
    system = SystemResource(settings, calls.lateness_ms, acting.spawner, acting.consumers, view, window)
    window = partial(calls.window, ProcessUsageWatcher.key)
    return system, ProcessUsageWatcher(settings, acting.known, acting.lives.members, view, window)


def log_services(
    home: Home,
    log: SqliteEventLog,
    clock: SystemClock,
    spawner: Spawner,
    view: View,
    settings: CurrentSettings,
    calls: DaemonCallbacks,
) -> dict[str, Service]:
    """What proves the log: it is read again now and then, and its head is written down elsewhere."""
    failed, doubted = calls.failed, log.written_by_others
    check = partial(check_log, log, view, doubted, partial(read_log, home, spawner), failed)

    def mended() -> None:
        if view().conditions[DAMAGED]:  # it may be that an anchor lacked what it has now
            doubted.set()

    return {
        "deep check": SettingsService(lambda: settings().daemon.verify_every, check),
        "anchor": SettingsService(
            lambda: settings().anchor,
            anchoring(
                home,
                log,
                clock,
                spawner,
                settings,
                failed,
                calls.changed,
                lambda: view().control.anchored,
                calls.append,
                mended,
            ),
        ),
    }


def engine_services(
    home: Home,
    log: SqliteEventLog,
    view: View,
    settings: CurrentSettings,
    engine: EngineParts | None,
    failed: Failed,
) -> dict[str, Service]:
    """What looks after the engine's repository, and after what its hosts have left behind."""
    fault = partial(engine_fault, home, settings, engine, FileThreads(is_needed=lambda: True))
    return {
        "hosts left over": lambda _, begun: later(begun, end_earlier_hosts(home, failed)),
        "engine repository": lambda _, begun: later(begun, watch_repository(log, view, fault, failed)),
    }


def socket_services(
    home: Home,
    settings: CurrentSettings,
    faults: Sequence[str],
    context: WatcherContext,
    failed: Failed,
) -> dict[str, Service]:
    """What answers at the home's socket, and at those of groups that capabilities want one for."""
    socket = SocketService(home, settings, faults, OWNER_ALONE, failed, scope_of(context))
    return {
        "socket": socket,
        "sockets of groups": lambda handler, begun: SettingsService(
            lambda: group_sockets_of(context), partial(socket.serve_groups, handler)
        )(handler, begun),
    }


def occasional_services(
    lock: HomeLock | None, logs: FollowedLogs | None, failed: Failed
) -> dict[str, Service]:
    """What not every daemon does: keep the lock that it was given, read logs first, speak to who looks on."""
    services: dict[str, Service] = {}
    if lock:
        services["lock"] = lambda _, begun: later(begun, keep_lock(lock, FileThreads(in_child=False), failed))
    if logs:
        services["logs"] = lambda _, begun: after(logs.standing(FIRST_READ), begun)
    if sys.stderr.isatty():
        services["voice"] = lambda request_handler, begun: later(begun, sense_aloud(request_handler))
    return services


@asynccontextmanager
async def narrated_log(
    home: Home, clock: SystemClock, objects: FileObjects, how: Opening, view: View
) -> AsyncIterator[SqliteEventLog]:
    """The log that the daemon writes, without rows lost unless that is accepted, and told aloud as it grows."""
    opened = SqliteEventLog.open(home.events, clock=clock, objects=objects, reserve=home.reserve, how=how)
    async with opened as log:
        if not how.accept_damage:
            await refuse_lost_rows(home, log)
        log.listen(narrator := Narrator(lambda: view().effects.open))
        try:
            yield log
        finally:
            narrator.speak()


def errors(store: str, words: str) -> Sequence[Draft]:
    """What was wrong with a store when it was opened, to be said; nothing if there are no words for it."""
    return [Draft(ErrorReported(message=words), subject=store)] if words else []


async def read_log(home: Home, spawner: Spawner) -> LogCheck:
    """Read the whole log in a child of low priority; what it found."""
    verify = ("-P", "-m", "upulse_cli", "verify", "--no-engine", "--json", "--home", str(home.path))
    argv = ("nice", "-n", "19", sys.executable, *verify)
    outcome = await spawner.run(
        argv, env=python_environment(), inherits=False, timeout=LONGEST_VERIFY, marker="deep-check"
    )
    try:
        found = json.loads(outcome.output)
    except ValueError:
        said = outcome.output.strip() or f"nothing, and exited with {outcome.exit}"
        raise PulseError(f"upulse verify said {said[-500:]}") from None
    fields = {name: found[name] for name in LogVerified.model_fields}
    return LogCheck(LogVerified(**fields), found["is_accepted"])


async def engine_fault(
    home: Home,
    current_settings: CurrentSettings,
    engine: EngineParts | None,
    files: FileThreads,
    commit: str,
    thorough: bool,
) -> str:
    """What is wrong with the repository of the engine in force; empty if it is whole, or not wanted."""
    if not current_settings().engine.enabled:
        return ""
    if fault := await repository_fault(home, files, commit, thorough):
        return f"the log says that {commit[:12]} is in force, and {fault}"
    if engine is None:
        return f"{commit[:12]} does not run, since its repository could not be found at the start: upulse daemon restart"
    return ""


async def end_earlier_hosts(home: Home, failed: Callable[[str, str], None]) -> None:
    """End what hosts of an earlier daemon have left."""
    try:
        await asyncio.to_thread(end_hosts_left_over, home.path)
    except (PulseError, OSError) as error:
        failed("hosts left over", str(error))
    await asyncio.Event().wait()


async def keep_lock(lock: HomeLock, files: FileThreads, failed: Failed) -> None:
    """Hold on to the home's lock even if its file is removed; ends the daemon if another one has the home.

    What is wrong with the file or its disk is no reason to end: what is held still keeps others away.
    """
    while True:
        await asyncio.sleep(coalesced(LOCK_CHECK))
        try:
            await files.ask("the home's lock", lock.keep)
        except (OSError, LockUnusable) as error:
            failed("lock", f"its file is not as it should be: {error}")


async def after(work: Awaitable[None], begun: Callable[[], None]) -> None:
    """A service that serves once this work is done, and then has nothing to do."""
    await work
    begun()
    await asyncio.Event().wait()


async def later(begun: Callable[[], None], work: Awaitable[None]) -> None:
    """A service that nobody has to wait for."""
    begun()
    await work
