"""Pulse's own MCP server: its tools, the tokens of its clients, and the configuration that they need."""

from collections.abc import Callable

from pulse_adapters.mcp.clients import name_of
from pulse_core.capability import Scope, WatcherContext
from pulse_core.composition import is_reserved
from pulse_core.mcp.client_scope import ClientScope


def scopes(context: WatcherContext) -> Callable[[int, int, str], Scope | None]:
    """What callers of the socket that say a client's token are bound to."""

    def scope(_pid: int, _uid: int, token: str) -> ClientScope | None:
        name = name_of(context.home.path, token)
        return ClientScope(name, context.settings, context.clock.now, is_reserved) if name else None

    return scope
