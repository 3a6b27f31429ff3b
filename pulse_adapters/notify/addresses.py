"""The addresses of notices: URLs from the settings, resolved when used, and what is wrong with them."""

import logging
import os
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from hashlib import sha256
from importlib.util import find_spec

from pulse_adapters.notify.deliver import NO_APPRISE, missing_packages
from pulse_core.settings.secrets import mask_secret
from pulse_core.settings.settings import Settings

VARIABLE = "env:"
PACKAGE = "apprise"


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
    """Why notices can't reach the addresses of the settings, a sentence each; empty if they can, or none is set."""
    missing = [
        f"no notices go to {name}: the variable is not set in the daemon's environment; set it and restart the daemon"
        for name in settings.notice_urls
        if not resolve_url(name, environment)
    ]
    if settings.notice_urls and find_spec(PACKAGE) is None:
        names = address_names(settings.notice_urls).values()
        return [*missing, f"no notices go to {', '.join(names)}: {NO_APPRISE}"]
    return missing


def unusable_addresses(
    settings: Settings, environment: Mapping[str, str] = os.environ
) -> Mapping[tuple[str | int, ...], str]:
    """What is wrong with each address, by its place in the settings, and what to install, if that is why.

    Imports Apprise, so it is for commands, not for the daemon.
    """
    names: dict[tuple[str | int, ...], str] = {
        ("notify", "urls", place): name for place, name in enumerate(settings.notify.urls)
    }
    for number, route in enumerate(settings.notify_route):
        names |= {("notify_route", number, "urls", place): name for place, name in enumerate(route.urls)}
    urls = {place: resolve_url(name, environment) for place, name in names.items()}
    if find_spec(PACKAGE) is None:
        return {place: f"no notices go to {mask_secret(name)}: {NO_APPRISE}" for place, name in names.items()}
    if not any(urls.values()):
        return {}
    logger = logging.getLogger("apprise")
    logger.addHandler(logging.NullHandler())  # it would show the address
    logger.propagate = False
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about what its many services import
        import apprise

        known = {url for url in urls.values() if url and apprise.Apprise().add(url)}
        unknown = {place: url for place, url in urls.items() if url and url not in known}
        return {
            place: _fault(mask_secret(names[place]), missing_packages(url)) for place, url in unknown.items()
        }


def _fault(name: str, missing: str | None) -> str:
    if missing:
        return f"no notices go to {name}: {missing}"
    return f"Apprise knows no service for {name}, or misses a part of its URL"
