"""The addresses of notices: URLs from the settings, resolved when used, and what is wrong with them."""

import os
from collections.abc import Mapping, Sequence
from importlib.util import find_spec

from pulse_core.settings import NotifySettings

VARIABLE = "env:"
PACKAGE = "apprise"
INSTALL = "pip install 'upulse[notify]'"
NO_APPRISE = f"notices are only logged: the package apprise is not installed; install it with: {INSTALL}"


def resolve_url(name: str, environment: Mapping[str, str] = os.environ) -> str:
    """The URL that a setting names: itself, or the value of its variable; empty if that is not set."""
    if not name.startswith(VARIABLE):
        return name
    return environment.get(name.removeprefix(VARIABLE), "").strip()


def delivery_faults(settings: NotifySettings, environment: Mapping[str, str] = os.environ) -> Sequence[str]:
    """Why notices can't reach the addresses of `[notify] urls`, a sentence each; empty if they can, or none is set."""
    missing = [
        f"no notices go to {name}: the variable is not set in the daemon's environment; set it and restart the daemon"
        for name in settings.urls
        if not resolve_url(name, environment)
    ]
    return [*missing, *([NO_APPRISE] if settings.urls and find_spec(PACKAGE) is None else [])]
