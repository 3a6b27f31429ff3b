"""A daemon inside the benchmark's own process, on real stores, with parts of the benchmark's own."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

from pulse_adapters.config.home import Home
from pulse_adapters.sqlite.open_log import Opening
from pulse_core.daemon import Daemon
from upulse_cli.wiring.daemon import real_daemon


@asynccontextmanager
async def living(home: Home, **parts: Any) -> AsyncIterator[Daemon]:
    """A running daemon, wired as the real one but for these parts; no socket, no deep check, no other watcher."""
    async with real_daemon(home, Opening()) as real:
        daemon, stop = (
            Daemon(replace(real.parts, **{"services": {}, "watchers": (), **parts})),
            asyncio.Event(),
        )
        life = asyncio.create_task(daemon.run(stop), name="daemon")
        try:
            while not daemon.ticker.took_us and not life.done():
                await asyncio.sleep(0.01)
            yield daemon
        finally:
            stop.set()
            await life
