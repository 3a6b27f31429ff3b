"""Where notices go: URLs as the settings name them, resolved when they are used, and what is wrong with them."""

import os
from collections.abc import Mapping, Sequence
from importlib.util import find_spec

from pulse_core.settings import NotifySettings

VARIABLE = "env:"
PACKAGE = "apprise"
INSTALL = "pip install 'upulse[notify]'"
NO_APPRISE = f"notices are only logged: the package apprise is not installed; install it with: {INSTALL}"


def resolve_url(name: str, environment: Mapping[str, str] = os.environ) -> str:
    """The URL that a setting names: itself, or what its variable holds; nothing if that is not set."""
    if not name.startswith(VARIABLE):
        return name
    return environment.get(name.removeprefix(VARIABLE), "").strip()


def delivery_faults(settings: NotifySettings, environment: Mapping[str, str] = os.environ) -> Sequence[str]:
    """Why notices would not get where `[notify] urls` says, a sentence each; nothing if they would, or none is set."""
    missing = [
        f"no notices go to {name}: the variable is not set in the daemon's environment; set it and restart the daemon"
        for name in settings.urls
        if not resolve_url(name, environment)
    ]
    return [*missing, *([NO_APPRISE] if settings.urls and find_spec(PACKAGE) is None else [])]
