"""One daemon on this machine, all of its parts joined."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace

from pulse_adapters.config.home import Home
from pulse_adapters.host.own_files import HomeFiles
from pulse_adapters.ipc.lock import HomeLock
from pulse_adapters.logs.reader import FollowedLogs
from pulse_adapters.metrics.sidecars import sidecars
from pulse_adapters.network.prober import ChildProber
from pulse_adapters.sqlite.opening import Opening
from pulse_adapters.sqlite.reserve import SIZE, Reserve
from pulse_adapters.sqlite.vitals import SqliteVitals
from pulse_core.daemon import Daemon, Service
from pulse_core.daemon.disk_quota import keep_quota
from pulse_core.model.event import Draft
from pulse_core.model.vitals import Window
from upulse_cli.wiring.daemon_context import daemon_context
from upulse_cli.wiring.engine import engine_of
from upulse_cli.wiring.executors import machine_executors
from upulse_cli.wiring.services import knowing, later, services_of
from upulse_cli.wiring.stores import narrated_log, parts_of, torn
from upulse_cli.wiring.watchers import outward_watchers, system_watcher


@asynccontextmanager
async def real_daemon(
    home: Home, how: Opening, news: Sequence[Draft] = (), lock: HomeLock | None = None
) -> AsyncIterator[Daemon]:
    """A daemon on this machine, its stores open, with what the start has to say. The caller holds the lock."""
    shared = daemon_context(home)
    daemon: Daemon

    def failed(whose: str, words: str) -> None:
        daemon.reporter(whose, words)

    def windows() -> Mapping[str, Window]:
        return daemon.watch.windows

    acting = machine_executors(home, shared.current_settings, shared.view, failed)
    system = system_watcher(shared, acting, windows, lambda: daemon.housekeeping.lateness())
    async with AsyncExitStack() as stack:
        stack.callback(acting.close)
        log = await stack.enter_async_context(narrated_log(shared, how))
        await stack.enter_async_context(system)
        vitals = await stack.enter_async_context(SqliteVitals.open(home.vitals))
        parts = parts_of(shared, acting, log, vitals)
        stack.callback((logs := FollowedLogs(failed)).close)
        stack.callback((prober := ChildProber()).close)
        own_files = HomeFiles(home, SIZE, Reserve(home.reserve).make)
        services: Mapping[str, Service] = {
            **services_of(shared, log, acting.spawner, lock, failed),
            **sidecars(
                home.path, shared.current_settings, lambda seconds: daemon.is_turning(seconds), failed
            ),
            **knowing(shared, logs),
            "room": lambda request_handler, begun: later(
                begun, keep_quota(own_files, vitals.yield_oldest, shared.current_settings, failed)
            ),
        }
        daemon = Daemon(
            replace(
                parts,
                watchers=(system, *outward_watchers(shared, logs, prober, vitals, windows)),
                services=services,
                news=(*news, *torn(log)),
                engine=engine_of(shared, windows),
            )
        )
        daemon.journal.listen_once(acting.notify.hear)
        yield daemon
