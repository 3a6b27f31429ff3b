"""What runs beside the loops of a daemon: the socket, the lock, the check of the log, its voice, the followed logs."""

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable, Mapping
from functools import partial

from pulse_adapters.config.file import OWNER_ALONE
from pulse_adapters.config.home import Home
from pulse_adapters.host.spawner import Spawner
from pulse_adapters.ipc.lock import HomeLock
from pulse_adapters.ipc.socket_service import SocketService
from pulse_adapters.logs.reader import FollowedLogs
from pulse_adapters.sqlite.events import SqliteEventLog
from pulse_core.daemon import Service
from pulse_core.daemon.services import check_log
from pulse_core.model.kinds import LogVerified
from upulse_cli.views.narrator import sense_aloud
from upulse_cli.wiring.daemon_context import DaemonContext, Failed

LOOK = 3.0
"""Seconds between two looks at whether the lock's file is still there."""

LONGEST_CHECK = 6 * 3600.0
FIRST_LOOK = 2.0
"""Seconds for which a start waits until it is known what the followed logs hold: what is written later is news."""


def services_of(
    shared: DaemonContext, log: SqliteEventLog, spawner: Spawner, lock: HomeLock | None, failed: Failed
) -> Mapping[str, Service]:
    """What runs beside the loops: the socket, the hold on the lock, the check of the whole log, the voice."""
    made: dict[str, Service] = {
        "socket": SocketService(shared.home, shared.current_settings, shared.faults, OWNER_ALONE, failed)
    }
    if lock:
        made["lock"] = lambda request_handler, begun: later(begun, keep_place(lock))
    made["deep check"] = lambda request_handler, begun: later(
        begun, check_log(log, partial(read_log, shared.home, spawner))
    )
    if sys.stderr.isatty():
        made["voice"] = lambda request_handler, begun: later(begun, sense_aloud(request_handler))
    return made


def knowing(shared: DaemonContext, logs: FollowedLogs) -> Mapping[str, Service]:
    """Holds up a start until it is known what the followed logs hold; nothing where none are followed."""
    if not shared.current_settings().log:
        return {}
    return {"logs": lambda request_handler, begun: after(logs.standing(FIRST_LOOK), begun)}


async def read_log(home: Home, spawner: Spawner) -> LogVerified:
    """Read the whole log in a child of low priority; what it found."""
    verify = (sys.executable, "-m", "upulse_cli", "verify", "--json", "--home", str(home.path))
    argv = ("nice", "-n", "19", *verify)
    outcome = await spawner.run(argv, cwd=None, env={}, timeout=LONGEST_CHECK, marker="deep-check")
    found = json.loads(outcome.output)
    return LogVerified(rows=found["rows"], took_ms=found["took_ms"], fault=found["fault"])


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
