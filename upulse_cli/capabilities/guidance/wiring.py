"""Guidance over its real adapters."""

import asyncio
import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from importlib.util import find_spec
from socket import socket
from typing import TYPE_CHECKING

from pulse_adapters.guidance.disk_project_files import DiskProjectFiles
from pulse_core.guidance.protocol import ENDPOINT
from pulse_core.guidance.service import GuidanceService
from pulse_core.model.errors import NoHome, PulseError
from upulse_cli.capabilities.guidance.recorded_guidance import RecordedGuidance

if TYPE_CHECKING:
    from pulse_core.app.context import HomeContext


def require_mcp() -> None:
    """Raise PulseError without the package that an MCP server needs."""
    if find_spec("mcp") is None:
        raise PulseError("the MCP server needs the package mcp; install it with: pip install 'upulse[mcp]'")


def project_root(project: str) -> str:
    """The folder that is meant, as its real path; raises PulseError if it is none, or has an unusable name."""
    path = os.path.realpath(os.path.expanduser(project))
    if not os.path.isdir(path):
        raise PulseError(f"{path} is no folder")
    if not path.isprintable() or len(path) > 400:
        raise PulseError(f"{path!r} is no usable path: at most 400 printable characters")
    return path


@contextmanager
def guided(home: "HomeContext") -> Iterator[GuidanceService]:
    """The service of a home, for one command."""
    service, log = guidance_service(home)
    with closing(log):
        yield service


def guidance_service(home: "HomeContext") -> tuple[GuidanceService, RecordedGuidance]:
    """The service of a home, and its log, to be used by one thread."""
    log = RecordedGuidance(home)
    files = DiskProjectFiles()
    return GuidanceService(log, files, lambda: home.clock.now().at, lambda: secrets.token_hex(4)), log


def home_to_use(option: str | None) -> "HomeContext":
    """The home that is meant; a new one if there is none."""
    from upulse_cli.wiring.home import found_home, home_context, make_home, meant_home
    from upulse_cli.wiring.offline import make_log

    try:
        make_log(context := home_context(found_home(option)))
    except NoHome:
        context = make_home(meant_home(option), demo=False)
    return context


@contextmanager
def port_taken(host: str, port: int, token: str | None) -> Iterator[tuple[socket, str | None]]:
    """A port that is taken, but not yet open, and the token; a Ctrl-C ends what is done with them.

    Raises PortBusy, or PulseError without the package, or for an address that others reach if there is no token.
    """
    require_mcp()
    from pulse_adapters.host.server_port import LOOPBACK, take_port

    kind, _, name = (token or "").partition(":")
    secret = os.environ.get(name) if kind == "env" else None
    if token is not None and not secret:
        raise PulseError(f"--token is env:NAME of a variable that holds the token; {token!r} is not")
    if secret is None and host not in LOOPBACK:
        raise PulseError(f"{host} may be reached from elsewhere; say --token env:NAME, or use 127.0.0.1")
    with take_port(host, port) as taken, suppress(KeyboardInterrupt):
        yield taken, secret


def serve_project(
    project: str, host: str, port: int, token: str | None, home: str | None, say: Callable[[str], None]
) -> None:
    """Serve one project's guidance until a signal comes. The port is taken before anything is written."""
    root = project_root(project)
    with port_taken(host, port, token) as (taken, secret):
        from pulse_adapters.guidance.mcp_server import GuidanceServer
        from pulse_adapters.host.server_port import LOOPBACK, open_port
        from pulse_adapters.mcp_http.http_server import RequireToken, beside, serve, stateless_app

        service, _ = guidance_service(home_to_use(home))
        server = GuidanceServer(service, lambda: root)
        if unread := server.in_thread(lambda: service.begin(root)):
            words = "could not be read; all others were taken over"
            say(f"{unread} lines of {root}/.pulse/events.jsonl {words}.")
        address = open_port(taken, host, port)
        say(f"Watching {root}/.pulse")
        say(f"MCP endpoint: {address}{ENDPOINT}")
        app = stateless_app(server.mcp(), ENDPOINT, host in LOOPBACK)

        async def run() -> None:
            async with beside(server.watch(root, say)):
                await serve(RequireToken(app, secret) if secret else app, taken, app)

        asyncio.run(run())
        server.close()
