"""Guidance over its real adapters."""

import asyncio
import os
import secrets
from collections.abc import Callable
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from pulse_adapters.guidance.disk_project_files import DiskProjectFiles
from pulse_core.guidance.service import GuidanceService
from pulse_core.model.errors import NoHome, PulseError
from upulse_cli.capabilities.guidance.recorded_guidance import RecordedGuidance

if TYPE_CHECKING:
    from pulse_core.app.context import HomeContext

NO_MCP = "the MCP server needs the package mcp; install it with: pip install 'upulse[mcp]'"
BUSY = 3
"""The exit code if somebody else has the port."""


def project_root(project: str) -> str:
    """The folder that is meant, as its real path; raises PulseError if it is none, or has an unusable name."""
    root = Path(os.path.abspath(os.path.expanduser(project)))
    if not root.is_dir():
        raise PulseError(f"{root} is no folder")
    path = os.path.realpath(root)
    if not path.isprintable() or len(path) > 400:
        raise PulseError(f"{path!r} is no usable path: at most 400 printable characters")
    return path


def guidance_service(home: "HomeContext") -> tuple[GuidanceService, RecordedGuidance]:
    """The service of a home, and its log, to be used by one thread."""
    log = RecordedGuidance(home)
    files = DiskProjectFiles()
    return GuidanceService(log, files, lambda: home.clock.now().at, lambda: secrets.token_hex(4)), log


def home_to_use(option: str | None) -> "HomeContext":
    """The home that is meant; a new one if there is none."""
    from upulse_cli.wiring.home import found_home, home_context, meant_home
    from upulse_cli.wiring.offline import make_log, write_settings

    try:
        home = found_home(option)
    except NoHome:
        home = meant_home(option)
        home.create()
        write_settings(home, demo=False)
    context = home_context(home)
    make_log(context)
    return context


def token_from(option: str | None) -> str | None:
    """The token that `--token env:NAME` means."""
    if option is None:
        return None
    kind, _, name = option.partition(":")
    if kind != "env" or not (token := os.environ.get(name, "")):
        raise PulseError(f"--token is env:NAME of a variable that holds the token; {option!r} is not")
    return token


def serve(
    project: str, host: str, port: int, token: str | None, home: str | None, say: Callable[[str], None]
) -> int:
    """Serve one project's guidance until a signal comes; the exit code. The port is taken before anything is written."""
    from pulse_adapters.guidance.listener import PortBusy, is_loopback

    if find_spec("mcp") is None:
        raise PulseError(NO_MCP)
    root, secret = project_root(project), token_from(token)
    if secret is None and not is_loopback(host):
        raise PulseError(f"{host} can be reached from elsewhere; say --token env:NAME, or use 127.0.0.1")
    try:
        _serve(root, host, port, secret, home, say)
    except PortBusy as error:
        say(str(error))
        return BUSY
    return 0


def _serve(
    root: str, host: str, port: int, token: str | None, home: str | None, say: Callable[[str], None]
) -> None:
    from pulse_adapters.guidance.listener import open_port, take_port
    from pulse_adapters.guidance.mcp_server import GuidanceServer

    with take_port(host, port) as taken:
        service, _ = guidance_service(home_to_use(home))
        server = GuidanceServer(service, root, say)
        if unread := server.prepare(lambda: service.begin(root)):
            say(
                f"{unread} lines of {root}/.pulse/events.jsonl could not be read; all others were taken over."
            )
        open_port(taken, host, port)
        say(f"Watching {root}/.pulse")
        say(f"MCP endpoint: http://{f'[{host}]' if ':' in host else host}:{taken.getsockname()[1]}/mcp")
        with suppress(KeyboardInterrupt):
            asyncio.run(server.serve(taken, token))
