"""What runs beside the loops of a daemon: the socket, the lock, the check of the log, its voice, the followed logs."""

import asyncio
import sys
from collections.abc import Awaitable, Callable, Mapping

from pulse_adapters.host.spawn import Spawner
from pulse_adapters.ipc.lock import HomeLock
from pulse_adapters.logs.reader import FollowedLogs
from pulse_adapters.sqlite.events import SqliteEventLog
from pulse_core.daemon import RequestHandler, Service
from upulse_cli.answering import Served, answer, with_faults
from upulse_cli.deep_check import deep_check
from upulse_cli.logs import sense_aloud
from upulse_cli.wiring.ground import Failed, Ground

LOOK = 3.0
"""Seconds between two looks at whether the lock's file is still there."""

FIRST_LOOK = 2.0
"""Seconds for which a start waits until it is known what the followed logs hold: what is written later is news."""


def services_of(
    ground: Ground, log: SqliteEventLog, spawner: Spawner, lock: HomeLock | None, failed: Failed
) -> Mapping[str, Service]:
    """What runs beside the loops: the socket, the hold on the lock, the check of the whole log, the voice."""
    made: dict[str, Service] = {"socket": socket_service(ground, failed)}
    if lock:
        made["lock"] = lambda request_handler, begun: later(begun, keep_place(lock))
    made["deep check"] = lambda request_handler, begun: later(begun, deep_check(ground.home, log, spawner))
    if sys.stderr.isatty():
        made["voice"] = lambda request_handler, begun: later(begun, sense_aloud(request_handler))
    return made


def socket_service(ground: Ground, failed: Failed) -> Service:
    """The socket, where and to whom the settings open it; its status tells the faults that they had."""

    async def serving(request_handler: RequestHandler, begun: Callable[[], None]) -> None:
        await answer(
            ground.home,
            ground.current_settings,
            Served(with_faults(request_handler, ground.faults), begun, failed),
        )

    return serving


def knowing(ground: Ground, logs: FollowedLogs) -> Mapping[str, Service]:
    """Holds up a start until it is known what the followed logs hold; nothing where none are followed."""
    if not ground.current_settings().log:
        return {}
    return {"logs": lambda request_handler, begun: after(logs.standing(FIRST_LOOK), begun)}


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
