"""The addresses of notices: URLs from the settings, resolved when used, and what is wrong with them."""

import logging
import os
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from hashlib import sha256
from importlib.util import find_spec

from pulse_core.settings.secrets import mask_secret
from pulse_core.settings.settings import Settings

VARIABLE = "env:"
PACKAGE = "apprise"
INSTALL = "pip install 'upulse[notify]'"
NO_APPRISE = f"notices are only logged: the package apprise is not installed; install it with: {INSTALL}"


def resolve_url(name: str, environment: Mapping[str, str] = os.environ) -> str:
    """The URL that a setting names: itself, or the value of its variable; empty if that is not set."""
    if not name.startswith(VARIABLE):
        return name
    return environment.get(name.removeprefix(VARIABLE), "").strip()


def address_names(urls: Sequence[str]) -> Mapping[str, str]:
    """What each address is called in the log and to people: without its secrets, and as no other one is.

    Of addresses that look alike without them two bytes of a checksum are told: too little to find out a password.
    """
    masked = {url: mask_secret(url) for url in urls}
    alike = {name for name, times in Counter(masked.values()).items() if times > 1}
    return {
        url: f"{name}#{sha256(url.encode()).hexdigest()[:4]}" if name in alike else name
        for url, name in masked.items()
    }


def delivery_faults(settings: Settings, environment: Mapping[str, str] = os.environ) -> Sequence[str]:
    """Why notices can't reach the addresses of `[notify] urls`, a sentence each; empty if they can, or none is set."""
    missing = [
        f"no notices go to {name}: the variable is not set in the daemon's environment; set it and restart the daemon"
        for name in settings.notice_urls
        if not resolve_url(name, environment)
    ]
    return [*missing, *([NO_APPRISE] if settings.notice_urls and find_spec(PACKAGE) is None else [])]


def unknown_services(
    settings: Settings, environment: Mapping[str, str] = os.environ
) -> Mapping[tuple[str | int, ...], str]:
    """What is wrong with each address, by its place in the settings; empty if Apprise is not installed.

    Imports Apprise, so it is for commands, not for the daemon.
    """
    names: dict[tuple[str | int, ...], str] = {
        ("notify", "urls", place): name for place, name in enumerate(settings.notify.urls)
    }
    for number, route in enumerate(settings.notify_route):
        names |= {("notify_route", number, "urls", place): name for place, name in enumerate(route.urls)}
    urls = {place: resolve_url(name, environment) for place, name in names.items()}
    if not any(urls.values()) or find_spec(PACKAGE) is None:
        return {}
    logger = logging.getLogger("apprise")
    logger.addHandler(logging.NullHandler())  # it would show the address
    logger.propagate = False
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about what its many services import
        import apprise

        known = {url for url in urls.values() if url and apprise.Apprise().add(url)}
    return {
        place: f"Apprise knows no service for {mask_secret(names[place])}, or misses a part of its URL"
        for place, url in urls.items()
        if url and url not in known
    }
