"""`upulse gc`: asks the daemon to take away what is of no use, or does it alone under the home's lock."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from pulse_adapters.config.home import Home
from pulse_adapters.host.clock import SystemClock
from pulse_adapters.ipc.client import Client
from pulse_adapters.ipc.lock import HomeLock
from pulse_adapters.objects import FileObjects
from pulse_adapters.sqlite.named_objects import old_vitals, unnamed_by_ticks
from pulse_adapters.sqlite.vitals import SqliteVitals
from pulse_core import __version__
from pulse_core.app.append import AppendRequest, append
from pulse_core.app.gc import collect_garbage
from pulse_core.app.state import current_state, usable_settings
from pulse_core.model.errors import PulseError
from pulse_core.model.kinds import GcDone
from upulse_cli.wiring.gc import sweeper_of
from upulse_cli.wiring.home import home_context

PATIENCE = 600.0
"""Seconds without a sign of life after which a daemon that tidies is given up."""

Told = Mapping[str, Any]
"""The fields of the event `gc-done`."""


def collected(home: Home, by_daemon: bool) -> Told:
    """Take it away now; what went."""
    return asked(home) if by_daemon else asyncio.run(alone(home)).model_dump()


def asked(home: Home) -> Told:
    """What the daemon answers to the request."""
    request = append(home_context(home), AppendRequest("gc-requested"))
    with Client(home.socket, PATIENCE) as client:
        asked = {"since": request.event["seq"], "kinds": ["gc-done"], "brief": True}
        for item in client.stream("follow", **asked):
            if item["event"]["cause"] == request.event["id"]:
                told: Told = item["event"]["data"]
                return {name: told.get(name, field.default) for name, field in GcDone.model_fields.items()}
    raise PulseError("the daemon did not say what went; see: upulse daemon logs")


async def alone(home: Home) -> GcDone:
    """Do what the daemon would do, while none runs; raises HomeBusy if one does."""
    settings = usable_settings(home_context(home))
    with HomeLock(home.lock, __version__, wait=2.0):
        async with SqliteVitals.open(home.vitals) as vitals:
            sweeper = sweeper_of(
                home,
                FileObjects(home.objects),
                vitals.unnamed,
                lambda: settings,
                lambda: current_state(home_context(home)).control.damage,
            )
            return await collect_garbage(vitals, sweeper, SystemClock().now().at, settings.watch)


def foreseen(home: Home) -> Told:
    """What would go; nothing is changed."""
    settings, now = usable_settings(home_context(home)), SystemClock().now().at
    before, minutes_before = now - settings.watch.keep, now - settings.watch.keep_minutes

    async def unnamed(names: Sequence[str]) -> Sequence[str]:
        return unnamed_by_ticks(home.vitals, names, minutes_before)

    sweeper = sweeper_of(
        home,
        FileObjects(home.objects),
        unnamed,
        lambda: settings,
        lambda: current_state(home_context(home)).control.damage,
    )
    samples, ticks, minutes = old_vitals(home.vitals, before, minutes_before)
    swept = asyncio.run(sweeper.forecast())
    return {"samples": samples, "ticks": ticks, "minutes": minutes, **swept._asdict()}
