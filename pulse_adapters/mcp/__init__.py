"""Pulse's own MCP server: its tools, the tokens of its clients, and the configuration that they need."""

from collections.abc import Callable

from pulse_adapters.mcp.clients import name_of
from pulse_core.capability import Scope, WatcherContext
from pulse_core.composition import is_reserved
from pulse_core.mcp.client_scope import ClientScope


def scopes(context: WatcherContext) -> Callable[[int, int, str], Scope | None]:
    """What callers of the socket that say a client's token are bound to."""

    owners = 0, context.home.path.stat().st_uid

    def scope(_pid: int, uid: int, token: str) -> ClientScope | None:
        if (name := name_of(context.home.path, token)) is None:
            return None
        return ClientScope(name, context.settings, context.clock.now, is_reserved, uid in owners)

    return scope
