"""The daemon's socket as a service: callers get answers for as long as the daemon lives."""

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from pathlib import Path

from pulse_adapters.ipc.peer import Peer, group_id
from pulse_adapters.ipc.server import serve
from pulse_adapters.workers.run_as import user_name
from pulse_core.daemon import Caller, CurrentSettings, RequestHandler
from pulse_core.home import HomeLayout
from pulse_core.model.errors import PulseError, UnknownName
from pulse_core.model.json_types import Json
from pulse_core.settings.settings import SocketSettings

RETRY = 5.0
LOOK = 3.0


@dataclass(frozen=True)
class SocketService:
    """Serves the socket of a home where the settings want it: a `Service` of the daemon.

    settings_faults: those that the settings had at the start, told in the status; without_group: what is said of a
    socket whose group this machine has lost; failed: hears what could not be done.
    """

    home: HomeLayout
    current_settings: CurrentSettings
    settings_faults: Sequence[str]
    without_group: str
    failed: Callable[[str, str], None]

    async def __call__(self, request_handler: RequestHandler, begun: Callable[[], None]) -> None:
        """Serve until cancelled; if that cannot be done, say so and try again: survival never needs it."""
        report, faults = request_handler.report, list(self.settings_faults)
        if faults:
            request_handler = replace(request_handler, report=lambda: {**report(), "settings_faults": faults})
        while True:
            try:
                async with self._served(request_handler, self.current_settings().socket):
                    begun()
                    while self.home.socket.exists():  # noqa: ASYNC110 - a file that is removed tells nobody
                        await asyncio.sleep(LOOK)
                self.failed("socket", "its file was removed; it is made again")
            except (PulseError, OSError) as error:
                self.failed("socket", str(error))
                begun()
                await asyncio.sleep(RETRY)

    def _served(
        self, request_handler: RequestHandler, settings: SocketSettings
    ) -> AbstractAsyncContextManager[None]:
        def answers(peer: Peer, request: Mapping[str, Json]) -> AsyncIterator[Mapping[str, Json]]:
            return request_handler.answer(Caller(peer.role, user_name(peer.uid)), request)

        def on_error(error: Exception) -> None:
            self.failed("socket", f"{type(error).__name__}: {error}")

        path = Path(settings.directory) / "pulse.sock" if settings.directory else self.home.socket
        owner = os.stat(self.home.path).st_uid
        group = self._known_group(settings.group)
        return serve(path, answers, owner=owner, on_error=on_error, group=group, sign=self.home.socket)

    def _known_group(self, name: str | None) -> int | None:
        """The socket's group; if this machine has lost it, that is said, and the socket is for its owner alone."""
        try:
            return None if name is None else group_id(name)
        except UnknownName as error:
            self.failed("socket", f"{error}; {self.without_group}")
            return None
