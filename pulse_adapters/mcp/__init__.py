"""Pulse's own MCP server: its tools, the tokens of its clients, and the configuration that they need."""

from functools import partial

from pulse_adapters.mcp.clients import name_of
from pulse_adapters.workers.file_threads import FileThreads
from pulse_core.capability import Scopes, WatcherContext
from pulse_core.composition import is_reserved
from pulse_core.mcp.client_scope import ClientScope


def scopes(context: WatcherContext) -> Scopes:
    """What callers of the socket that say a client's token are bound to."""
    home, files = context.home.path, FileThreads(in_child=False, most=100)
    owners = 0, home.stat().st_uid

    async def scope(_pid: int, uid: int, token: str) -> ClientScope | None:
        if not token or (name := await files.ask(str(home), partial(name_of, home, token), token)) is None:
            return None
        return ClientScope(name, context.settings, context.clock.now, is_reserved, uid in owners)

    return scope
