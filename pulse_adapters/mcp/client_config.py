"""The configuration of programs that are to ask Pulse over MCP: where it lies, and what is added to it."""

import json
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from pulse_adapters.workers.plain_file import replace_plain
from pulse_core.model.errors import PulseError

PLACES = {"claude": ".claude.json", "cursor": ".cursor/mcp.json", "codex": ".codex/config.toml"}
"""In the user's own folder."""


class ClientConfig(NamedTuple):
    """The file of a client, what is added to it, and its whole text afterwards."""

    path: Path
    added: str
    text: str


def client_config(client: str, user: Path, command: list[str], env: Mapping[str, str]) -> ClientConfig:
    """The configuration with Pulse in it. Raises PulseError if the file can't be read, or has something of that name."""
    path = (user / PLACES[client]).resolve()
    try:
        before = path.read_text() if path.exists() else ""
        known: Any = tomllib.loads(before) if client == "codex" else json.loads(before or "{}")
    except (OSError, ValueError) as error:
        raise PulseError(f"{path} can't be read: {error}") from error
    key = "mcp_servers" if client == "codex" else "mcpServers"
    servers = known.setdefault(key, {}) if isinstance(known, dict) else None
    if not isinstance(servers, dict):
        raise PulseError(f"{path} is no configuration of {client}")
    entry = {"command": command[0], "args": command[1:], "env": dict(env)}
    if servers.get("pulse") == entry:
        return ClientConfig(path, "", before)
    if client == "codex":
        if "pulse" in servers:
            raise PulseError(f"{path} has another server named pulse; remove it there first")
        quoted = ", ".join(f"{name} = {json.dumps(value)}" for name, value in env.items())
        added = (
            f"[mcp_servers.pulse]\ncommand = {json.dumps(command[0])}\nargs = {json.dumps(command[1:])}\n"
            f"env = {{ {quoted} }}\n"
        )
        return ClientConfig(path, added, f"{before.rstrip()}\n\n{added}".lstrip())
    servers["pulse"] = entry
    added = json.dumps({key: {"pulse": entry}}, indent=2) + "\n"
    return ClientConfig(path, added, json.dumps(known, indent=2, ensure_ascii=False) + "\n")


def write_config(config: ClientConfig) -> None:
    """Write it at once, for its owner alone: there is a token in it."""
    config.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    replace_plain(config.path, config.text.encode())
