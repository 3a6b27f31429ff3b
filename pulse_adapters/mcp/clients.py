"""Clients: their tokens, a file in the home for each, which its owner alone can read and whose deletion ends the token; and
the configuration of programs that are to ask Pulse over MCP: where it lies, and what is added to it."""

import hmac
import json
import os
import re
import secrets
import tomllib
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from pulse_adapters.workers.plain_file import read_plain, replace_plain
from pulse_core.model.errors import PulseError

FOLDER = "clients"
NAME = r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}"
_TOKEN = re.compile(rf"client:({NAME}):[A-Za-z0-9_-]{{32}}")
_LONGEST = 200


def token_of(home: Path, name: str, *, make: bool) -> str:
    """The token of this client; if it has none, a new one, or none at all. Raises PulseError for a name of no use."""
    if not re.fullmatch(NAME, name):
        raise PulseError(f"{name[:100]!r} is no name of a client: letters, digits, '.', '_' and '-'")
    folder = home / FOLDER
    if (found := _read(folder / name)) or not make:
        return found
    folder.mkdir(mode=0o700, exist_ok=True)
    made = f"client:{name}:{secrets.token_urlsafe(24)}"
    with suppress(FileExistsError):
        replace_plain(folder / name, made.encode(), keep=True)
    return _read(folder / name)


def name_of(home: Path, token: str) -> str | None:
    """The client whose token this is; None if it is nobody's. Compared in constant time."""
    if not (shape := _TOKEN.fullmatch(token)):
        return None
    known = _read(home / FOLDER / shape[1])
    return shape[1] if known and hmac.compare_digest(known.encode(), token.encode()) else None


def _read(path: Path) -> str:
    with suppress(OSError):
        return read_plain(path, _LONGEST).decode("ascii", "replace")
    return ""


PLACES = {"claude": ".claude.json", "cursor": ".cursor/mcp.json", "codex": ".codex/config.toml"}
"""In the user's own folder."""


class ClientConfig(NamedTuple):
    """The file of a client, what is added to it, and its whole text afterwards."""

    path: Path
    added: str
    text: str


def client_config(client: str, user: Path, command: list[str], env: Mapping[str, str]) -> ClientConfig:
    """The configuration with Pulse in it. Raises PulseError if the file can't be read, or has something of that name."""
    path = Path(os.path.realpath(user / PLACES[client]))
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
        spelled = partial(json.dumps, ensure_ascii=False)  # TOML knows no halves of a rare character
        quoted = ", ".join(f"{name} = {spelled(value)}" for name, value in env.items())
        added = f"[mcp_servers.pulse]\ncommand = {spelled(command[0])}\nargs = {spelled(command[1:])}\n"
        added += f"env = {{ {quoted} }}\n"
        text = f"{before.rstrip()}\n\n{added}".lstrip()
        try:
            tomllib.loads(text)
        except ValueError as error:  # as where all servers stand in one line
            raise PulseError(f"{path} takes no [mcp_servers.pulse]; write tables there: {error}") from error
        return ClientConfig(path, added, text)
    servers["pulse"] = entry
    added = json.dumps({key: {"pulse": entry}}, indent=2) + "\n"
    return ClientConfig(path, added, json.dumps(known, indent=2, ensure_ascii=False) + "\n")


def write_config(config: ClientConfig) -> None:
    """Write it at once, for its owner alone: there is a token in it."""
    config.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    replace_plain(config.path, config.text.encode())
