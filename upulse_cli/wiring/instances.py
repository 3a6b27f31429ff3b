"""The homes that this user can know of, and how their daemons stand."""

import glob
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pulse_adapters.config.home import BASE, Home, NotUsable, instance_at
from pulse_adapters.systemd.manager import Unit, units
from pulse_core.app.status import daemon_status
from upulse_cli.wiring.home import home_context

NOBODY = {"pid": None, "since": None, "version": None}


def known(option: str | None) -> list[Mapping[str, Any]]:
    """Every home: the usual one, those of instances beside it, those of units, the one that is named.

    Each with name (null for one that is no instance's), home, state, pid, since, version and unit.
    """
    served = {unit.home: unit for unit in reversed(list(units()))}
    found = {path.resolve(): path for path in (*_beside(), *served, *_named(option))}
    told = (_told(Home(path), served.get(real)) for real, path in found.items())
    return sorted((one for one in told if one), key=lambda one: (one["name"] or "", one["home"]))


def _beside() -> Iterator[Path]:
    base = os.path.expanduser(BASE)
    yield Path(base)
    for path in glob.glob(f"{glob.escape(base)}-*"):
        if instance_at(Path(path)):
            yield Path(path)


def _named(option: str | None) -> Iterator[Path]:
    if option or os.environ.get("UPULSE_HOME"):
        yield Home.resolve(option).path


def _told(home: Home, unit: Unit | None) -> Mapping[str, Any] | None:
    """One home; None if there is none and no unit serves it."""
    about = {"name": instance_at(home.path), "home": str(home.path), "unit": str(unit.path) if unit else None}
    try:
        if not home.exists():
            return {**about, **NOBODY, "state": "missing"} if unit else None
        return {**about, **daemon_status(home_context(home))}
    except (NotUsable, PermissionError):
        return {**about, **NOBODY, "state": "not-readable"}
