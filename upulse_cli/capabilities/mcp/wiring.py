"""Pulse's MCP server over its real adapters."""

import asyncio
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from pulse_adapters.ipc.daemon_client import SocketDaemonClient
from pulse_adapters.mcp.clients import ClientConfig, client_config, name_of, token_of, write_config
from pulse_core.home import HomeLayout
from pulse_core.mcp.client_scope import SETTINGS
from pulse_core.model.errors import NotAnswering, PulseError
from upulse_cli.capabilities.guidance.wiring import guidance_service, port_taken, require_mcp
from upulse_cli.run_loop import run_on_stdio

if TYPE_CHECKING:
    from pulse_adapters.mcp.server import PulseServer
    from pulse_core.app.context import HomeContext


def serve_http(
    home: "HomeContext", host: str, port: int, token: str | None, say: Callable[[str], None]
) -> None:
    """Serve all projects until a signal comes."""
    with port_taken(host, port, token) as (taken, secret):
        from pulse_adapters.guidance.mcp_server import GuidanceServer
        from pulse_adapters.host.server_port import LOOPBACK, open_port
        from pulse_adapters.mcp.server import CLIENT, GUIDANCE, PATH, PROJECT, Door
        from pulse_adapters.mcp_http.http_server import RequireToken, serve, stateless_app

        service, log = guidance_service(home)
        guidance = GuidanceServer(service, PROJECT.get)

        def is_watched(root: str) -> bool:
            return root in guidance.in_thread(log.state).watched

        async def run() -> None:
            pulse = stateless_app(_server(home, CLIENT.get).mcp(), PATH, host in LOOPBACK)
            inner = stateless_app(guidance.mcp(), GUIDANCE, host in LOOPBACK)
            guarded = RequireToken(inner, secret) if secret else inner
            door = Door(pulse, guarded, partial(name_of, home.layout.path), is_watched)
            await serve(door, taken, pulse, inner)

        address = open_port(taken, host, port)
        say(f"Pulse's tools: {address}{PATH}")
        say(f"Guidance: {address}{GUIDANCE}/PATH of a project that was added")
        asyncio.run(run())
        guidance.close()


def serve_stdio(home: "HomeContext") -> None:
    """Serve whoever has started this process: the client, or the run, whose token is in PULSE_TOKEN."""
    require_mcp()
    token = os.environ.get("PULSE_TOKEN", "")
    words = token.split(":")
    # A run's token is checked by the daemon, with all that it says; here it is but a name.
    name = name_of(home.layout.path, token) or (words[3] if len(words) == 5 else None)
    if name is None:
        raise PulseError("PULSE_TOKEN is no token of a client; upulse mcp install makes one")

    server = _server(home, lambda: (name, token), {})
    run_on_stdio(server.mcp().run_stdio_async(), server.release_claims)


def installation(home: "HomeContext", client: str, name: str, write: bool) -> ClientConfig:
    """What is added to the configuration of a client; written, with a new token if it has none, only where that is said."""
    require_mcp()
    path, command = home.layout.path, [sys.executable, "-m", "upulse_cli", "mcp", "--stdio"]

    def config(token: str) -> ClientConfig:
        return client_config(client, Path.home(), command, {"UPULSE_HOME": str(path), "PULSE_TOKEN": token})

    found = config(token_of(path, name, make=False) or "(made with --write)")
    if write and found.added:
        write_config(found := config(token_of(path, name, make=True)))
    return found


def _server(
    home: "HomeContext", caller: Callable[[], tuple[str, str]], claims: dict[str, int] | None = None
) -> "PulseServer":
    """The server of Pulse's own tools. caller: the name and the token of whoever asks; claims: those that were made in the
    session, where there is one."""
    from pulse_adapters.mcp.server import PulseServer, ResourceChanges
    from pulse_adapters.mcp.tools import Tools
    from upulse_cli.wiring.engine import propose_rule

    quiet = replace(home, progress=lambda batches, _last: iter(batches), append_offline=_no_daemon)

    def tools() -> Tools:
        name, token = caller()
        own = replace(quiet, daemon=_ClientOfDaemon(home.layout, token))
        author, promotes = f"{name} <{name}@localhost>", SETTINGS.of(home.settings().settings).promote
        return Tools(
            own, name, partial(propose_rule, own, author, promotes), {} if claims is None else claims
        )

    return PulseServer(tools, ResourceChanges(quiet))


class _ClientOfDaemon(SocketDaemonClient):
    """Says a client's token with what it records, and asks as the user of this process."""

    def __init__(self, layout: HomeLayout, token: str) -> None:
        super().__init__(layout, said_token="")
        self._client = SocketDaemonClient(layout, said_token=token)

    def append(self, draft: Mapping[str, Any]) -> tuple[Mapping[str, Any], bool]:
        return self._client.append(draft)


def _no_daemon(_home: "HomeContext", _drafts: Sequence[Mapping[str, Any]]) -> NoReturn:
    raise NotAnswering("no daemon runs, and without it agents can't change anything")
