"""The daemon's socket as a service: who may ask what the desk answers, for as long as the daemon lives."""

import asyncio
import os
import pwd
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from pulse_adapters.config.file import OWNER_ALONE
from pulse_adapters.config.home import Home
from pulse_adapters.ipc.peer import Peer, group_id
from pulse_adapters.ipc.server import serve
from pulse_core.daemon import Caller, CurrentSettings, RequestHandler
from pulse_core.model.errors import PulseError, UnknownName
from pulse_core.model.json_types import Json
from pulse_core.settings import SocketSettings

SOCKET_RETRY = 5.0
PLACE_LOOK = 3.0


class Served(NamedTuple):
    """What the socket's server answers with, whom it tells that it serves, and that it could not."""

    request_handler: RequestHandler
    begun: Callable[[], None]
    failed: Callable[[str, str], None]


async def answer(home: Home, current_settings: CurrentSettings, served: Served) -> None:
    """Serve the socket until cancelled; if that cannot be done, say so and try again: survival never needs it."""
    while True:
        try:
            async with serve_socket(home, current_settings().socket, served):
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
        return served.request_handler.answer(Caller(peer.role, named(peer.uid)), request)

    def failing(error: Exception) -> None:
        served.failed("socket", f"{type(error).__name__}: {error}")

    path = Path(settings.directory) / "pulse.sock" if settings.directory else home.socket
    owner = os.stat(home.path).st_uid
    group = group_here(settings.group, served.failed)
    return serve(path, asked, owner=owner, on_error=failing, group=group, sign=home.socket)


def group_here(name: str | None, failed: Callable[[str, str], None]) -> str | None:
    """The socket's group; if this machine has lost it, that is said, and the socket is for its owner alone."""
    try:
        if name is not None:
            group_id(name)
    except UnknownName as error:
        failed("socket", f"{error}; {OWNER_ALONE}")
        return None
    return name


def with_faults(request_handler: RequestHandler, faults: Sequence[str]) -> RequestHandler:
    """The desk, whose status also tells the faults that the settings had at the start."""
    told = list(faults)
    return (
        replace(request_handler, report=lambda: {**request_handler.report(), "settings_faults": told})
        if told
        else request_handler
    )


def named(uid: int) -> str:
    """A user as the actor of events: its name, or its number if it has none."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"uid {uid}"
