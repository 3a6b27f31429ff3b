"""Watches the files of gateways, and keeps the configs that they have stayed up with."""

import asyncio

from pulse_adapters.openclaw.gateway_files import GatewayFiles
from pulse_adapters.workers.file_threads import FileThreads
from pulse_core.capability import WatcherContext
from pulse_core.model.errors import PulseError
from pulse_core.model.json_types import Json
from pulse_core.model.moment import US_PER_SECOND
from pulse_core.model.vitals import Reading, Window
from pulse_core.openclaw.rule import KEY, has_news, has_proven
from pulse_core.openclaw.settings import OPENCLAW

INTERVAL_S, IDLE_S = 15.0, 3_600.0


class OpenClawWatcher:
    """The watcher `openclaw`: one sample of all gateways."""

    name = key = KEY
    timeout = 60.0

    def __init__(self, context: WatcherContext) -> None:
        self._context, self.nudge = context, asyncio.Event()
        self._files = FileThreads(is_needed=lambda: True)

    @property
    def interval(self) -> float:
        """Seconds between two looks: as often as the least time in which a config may have proven good."""
        proven = [one.proven / US_PER_SECOND for one in OPENCLAW.of(self._context.settings())]
        return min(INTERVAL_S, *proven) if proven else IDLE_S

    def should_wake(self, window: Window) -> bool:
        """Whether a config may have to be put back."""
        return has_news(window)

    async def collect(self) -> Reading:
        """Look at each gateway's files."""
        data: dict[str, Json] = {}
        for gateway in OPENCLAW.of(self._context.settings()):
            files = GatewayFiles(self._context.home, gateway)
            try:
                seen = data[gateway.process] = await self._files.ask(gateway.folder, files.look)
                now, state = self._context.clock.now(), self._context.state()
                is_new = seen["config"] and seen["config"] not in seen["kept"]
                if is_new and has_proven(gateway, seen["age_us"], state, now):
                    await asyncio.to_thread(files.keep, seen["config"])
                    data[gateway.process] = await self._files.ask(gateway.folder, files.look)
            except (PulseError, TimeoutError) as fault:
                data[gateway.process] = {"fault": str(fault)}
        return Reading(data)
