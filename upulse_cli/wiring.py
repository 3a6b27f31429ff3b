"""Which adapters are real: the one place that joins the core to this machine."""

import asyncio
import os
import pwd
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import NamedTuple

from pulse_adapters.config.file import load
from pulse_adapters.config.home import Home
from pulse_adapters.host.clock import SystemClock
from pulse_adapters.host.restart_process import RestartProcess
from pulse_adapters.host.run_command import RunCommand
from pulse_adapters.host.spawn import Spawner
from pulse_adapters.host.stop_process import StopProcess
from pulse_adapters.host.system import SystemResource
from pulse_adapters.host.table import LinuxProcessTable
from pulse_adapters.ipc.lock import HomeLock
from pulse_adapters.ipc.peer import Peer
from pulse_adapters.ipc.server import serve
from pulse_adapters.notify.log_line import Notify
from pulse_adapters.objects.files import FileObjects
from pulse_adapters.sqlite.checkpoints import SqliteCheckpoints
from pulse_adapters.sqlite.events import SqliteEventLog, new_id
from pulse_adapters.sqlite.opening import Opening
from pulse_adapters.sqlite.vitals import SqliteVitals
from pulse_adapters.systemd.notify import Notifier
from pulse_core import __version__
from pulse_core.daemon import Caller, Daemon, Decisions, Desk, Parts
from pulse_core.model.errors import Damaged, PulseError, SettingsRefused
from pulse_core.model.event import Draft
from pulse_core.model.kinds import ErrorReported
from pulse_core.model.payload import Json, Role
from pulse_core.ports import Checkpoints, EventLog, Executor, Found
from pulse_core.record import Gate, Recorded
from pulse_core.record.view import View, advanced, restored
from pulse_core.settings import Settings, SocketSettings
from upulse_cli.deep_check import deep_check
from upulse_cli.logs import Narrator, sense_aloud

SOCKET_RETRY = 5.0
PLACE_LOOK = 3.0


@dataclass(frozen=True)
class Hands:
    """What acts on this machine, and the executors made of it."""

    spawner: Spawner
    table: LinuxProcessTable
    executors: Mapping[str, Executor]


def hands(home: Home, decisions: Decisions, view: View) -> Hands:
    """Everything that can act on the processes of this machine."""
    spawner = Spawner()
    table = LinuxProcessTable(spawner, home=home.path)
    boot = SystemClock().now().boot

    def known() -> Mapping[str, Found]:
        return {
            name: Found(history.pid, history.started)
            for name, history in view().processes.of.items()
            if history.pid is not None and history.started is not None and history.boot == boot
        }

    made: Sequence[Executor] = (
        RestartProcess(decisions, table, known, spawner, home.outputs),
        StopProcess(decisions, table, known, spawner),
        RunCommand(decisions, spawner),
        Notify(),
    )
    return Hands(spawner, table, {executor.action: executor for executor in made})


@asynccontextmanager
async def real_daemon(
    home: Home, how: Opening, news: Sequence[Draft] = (), lock: HomeLock | None = None
) -> AsyncIterator[Daemon]:
    """A daemon on this machine, its stores open, with what the start has to say. The caller holds the lock."""
    clock, objects, view = SystemClock(), FileObjects(home.objects), View()
    decisions = Decisions(lambda: load(home.config))
    acting = hands(home, decisions, view)
    daemon: Daemon
    system = SystemResource(decisions, lambda: daemon.housekeeping.lateness() * 1000, acting.spawner)
    async with AsyncExitStack() as stack:
        stack.callback(acting.spawner.close)
        stack.callback(acting.table.close)
        opened = SqliteEventLog.open(home.events, clock=clock, objects=objects, reserve=home.reserve, how=how)
        log = await stack.enter_async_context(opened)
        await stack.enter_async_context(system)
        checkpoints = SqliteCheckpoints(home.state)
        if not how.accept_damage:
            await refuse_lost_rows(log, checkpoints)
        log.listen(narrator := Narrator())
        stack.callback(narrator.speak)
        daemon = Daemon(
            Parts(
                log=log,
                vitals=await stack.enter_async_context(SqliteVitals.open(home.vitals)),
                objects=objects,
                checkpoints=checkpoints,
                clock=clock,
                table=acting.table,
                executors=acting.executors,
                decisions=decisions,
                view=view,
                lifeline=Notifier.from_environment(),
                new_id=new_id,
                dice=Random(),
                pid=os.getpid(),
                version=__version__,
                watchers=(system,),
                news=(*news, *torn(log)),
                services={
                    "socket": lambda desk, begun: answer(
                        home, decisions, Served(desk, begun, daemon.reporter)
                    ),
                    **({"lock": lambda desk, begun: later(begun, keep_place(lock))} if lock else {}),
                    "deep check": lambda desk, begun: later(begun, deep_check(home, log, acting.spawner)),
                    **(
                        {"voice": lambda desk, begun: later(begun, sense_aloud(desk))}
                        if sys.stderr.isatty()
                        else {}
                    ),
                },
            )
        )
        yield daemon


def torn(log: SqliteEventLog) -> Sequence[Draft]:
    """The torn end of a log after a power cut, to be said."""
    return [Draft(ErrorReported(message=log.torn), subject="log")] if log.torn else []


async def refuse_lost_rows(log: EventLog, checkpoints: Checkpoints) -> None:
    """Raise Damaged if the checkpoints stand at a row that the log does not have: then rows are gone."""
    for name, kept in (await checkpoints.load()).items():
        if await log.chain_at(kept.head.seq) != kept.head.chain:
            raise Damaged(
                f"events.db ends at row {log.head.seq}, or differs from what it was: state.db knows row"
                f" {kept.head.seq} ({name}); put the log back from a backup, or let"
                " `upulse daemon start --accept-damage` go on without the lost rows"
            )


async def keep_place(lock: HomeLock) -> None:
    """Hold on to the home's lock even if its file is removed; ends the daemon if another one has the home."""
    while True:
        await asyncio.sleep(PLACE_LOOK)
        lock.keep()


async def later(begun: Callable[[], None], work: Awaitable[None]) -> None:
    """A service that nobody has to wait for."""
    begun()
    await work


class Served(NamedTuple):
    """What the socket's server answers with, whom it tells that it serves, and that it could not."""

    desk: Desk
    begun: Callable[[], None]
    failed: Callable[[str, str], None]


async def answer(home: Home, decisions: Decisions, served: Served) -> None:
    """Serve the socket until cancelled; if that cannot be done, say so and try again: survival never needs it."""
    while True:
        try:
            async with serve_socket(home, decisions().socket, served):
                served.begun()
                while home.socket.exists():  # noqa: ASYNC110 - a file that is removed tells nobody
                    await asyncio.sleep(PLACE_LOOK)
            served.failed("socket", "its file was removed; it is made again")
        except (PulseError, OSError) as error:
            served.failed("socket", str(error))
            served.begun()
            await asyncio.sleep(SOCKET_RETRY)


def serve_socket(home: Home, settings: SocketSettings, served: Served) -> AbstractAsyncContextManager[None]:
    """The socket where the settings want it, answering."""

    def asked(peer: Peer, request: Mapping[str, Json]) -> AsyncIterator[Mapping[str, Json]]:
        return served.desk.answer(Caller(peer.role, named(peer.uid)), request)

    def failing(error: Exception) -> None:
        served.failed("socket", f"{type(error).__name__}: {error}")

    path = Path(settings.directory) / "pulse.sock" if settings.directory else home.socket
    owner = os.stat(home.path).st_uid
    return serve(path, asked, owner=owner, on_error=failing, group=settings.group, sign=home.socket)


def named(uid: int) -> str:
    """A user as the actor of events: its name, or its number if it has none."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"uid {uid}"


@asynccontextmanager
async def quiet_gate(home: Home) -> AsyncIterator[Gate]:
    """The gate of a home whose daemon is down. The caller holds the home's lock."""
    view = View()
    decisions = Decisions(lambda: settings_if_sound(home))
    opened = SqliteEventLog.open(
        home.events,
        clock=SystemClock(),
        objects=FileObjects(home.objects),
        reserve=home.reserve,
        how=Opening(may_migrate=False),
    )
    async with opened as log:
        await refuse_lost_rows(log, SqliteCheckpoints(home.state))
        state = await restored(log, await SqliteCheckpoints(home.state).load())
        view.stand_at(await advanced(log, state, log.head.seq))
        log.listen(view.hear)
        yield Gate(log, view, decisions, hands(home, decisions, view).executors)


def settings_if_sound(home: Home) -> Settings:
    """The settings, or the defaults where they are refused: a pause must not wait until they are mended."""
    try:
        return load(home.config)
    except SettingsRefused:
        return Settings()


async def append_quietly(home: Home, draft: Draft) -> Recorded:
    """Record what a person asks for while no daemon runs; raises HomeBusy if one does."""
    with HomeLock(home.lock, __version__, wait=2.0):
        async with quiet_gate(home) as gate:
            return (await gate.append(Role.PERSON, named(os.getuid()), [draft]))[0]
