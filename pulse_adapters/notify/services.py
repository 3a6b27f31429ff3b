"""Which addresses no service of Apprise knows. Imports Apprise, so it is for commands, not for the daemon."""

import logging
import os
import warnings
from collections.abc import Collection, Mapping, Sequence
from importlib.util import find_spec

from pulse_adapters.notify.addresses import PACKAGE, resolve_url
from pulse_core.settings import NotifySettings
from pulse_core.settings.secrets import mask_secret


def unknown_services(
    settings: NotifySettings, environment: Mapping[str, str] = os.environ
) -> Mapping[int, str]:
    """What is wrong with each address, by its index in `[notify] urls`; empty if Apprise is not installed."""
    urls = {place: resolve_url(name, environment) for place, name in enumerate(settings.urls)}
    if not any(urls.values()) or find_spec(PACKAGE) is None:
        return {}
    known = _usable([url for url in urls.values() if url])
    return {
        place: f"Apprise knows no service for {mask_secret(settings.urls[place])}, or misses a part of its URL"
        for place, url in urls.items()
        if url and url not in known
    }


def _usable(urls: Sequence[str]) -> Collection[str]:
    """The URLs that Apprise can use."""
    logger = logging.getLogger("apprise")
    logger.addHandler(logging.NullHandler())  # it would show the address
    logger.propagate = False
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about what its many services import
        import apprise

        return {url for url in urls if apprise.Apprise().add(url)}
