"""A handler for the socket's tests, and whoever sits behind it."""

import asyncio
import os
import socket
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

from pulse_adapters.host.allocator import keep_little_free
from pulse_adapters.ipc.peer import Peer
from pulse_adapters.ipc.server import serve
from pulse_adapters.ipc.wire import WireLimits
from pulse_core.model.errors import HomeBusy, PulseError, Refused

LARGE = {"tasks": {str(n): {"prompt": "x" * 8_000, "labels": ["ä", n]} for n in range(2_000)}}


class Desk:
    """A handler with one operation for each thing a caller may meet."""

    def __init__(self) -> None:
        self.errors: list[Exception] = []
        self.ended: list[str] = []
        self.peers: list[Peer] = []

    async def __call__(self, peer: Peer, asked: Mapping[str, Any]) -> AsyncIterator[Mapping[str, Any]]:
        self.peers.append(peer)
        match asked["op"]:
            case "echo":
                yield asked
            case "count":
                for n in range(asked["upto"]):
                    yield {"n": n}
            case "busy":
                raise HomeBusy("/home", 42)
            case "refuse":
                error = Refused("not you")
                vars(error)["event"] = {"id": "x"}
                raise error
            case "private":
                raise Private("words")
            case "break":
                yield {"n": 0}
                raise KeyError("secret")
            case "slow":
                await asyncio.sleep(1.2)
                yield {"slow": True}
            case "for-ever" | "follow":
                try:
                    yield {"begun": True}
                    await asyncio.Event().wait()
                finally:
                    self.ended.append("for-ever")
            case "state":
                yield {"value": LARGE}
            case "flood":
                try:
                    while True:
                        yield {"much": "x" * 10_000}
                finally:
                    self.ended.append("flood")

    def serve(
        self, path: Path, limits: WireLimits | None = None, **more: Any
    ) -> AbstractAsyncContextManager[None]:
        return serve(
            path, self, owner=os.getuid(), on_error=self.errors.append, limits=limits or WireLimits(), **more
        )


class Private(PulseError):
    """An error whose class a client may not know."""


async def alone(path: Path) -> None:
    """Serve as a daemon would until the standard input ends; then say which errors there were."""
    keep_little_free()
    request_handler = Desk()
    async with request_handler.serve(path):
        print("serving", flush=True)
        await asyncio.to_thread(sys.stdin.read)
    print(request_handler.errors, flush=True)


if __name__ == "__main__":
    asyncio.run(alone(Path(sys.argv[1])))


async def opened(path: Path, limit: int = 1 << 16) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A connection that is one: where the queue of callers is full, asyncio takes the refusal for a connection."""
    connection = socket.socket(socket.AF_UNIX)
    await asyncio.to_thread(connection.connect, str(path))
    return await asyncio.open_unix_connection(sock=connection, limit=limit)
