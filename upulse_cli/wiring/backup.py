"""The backups of a home on this machine, and the shadow that a restore ends."""

from collections.abc import Iterator
from contextlib import contextmanager

from pulse_adapters.config.home import Home
from pulse_adapters.host.clock import SystemClock
from pulse_adapters.ipc.lock import HomeLock
from pulse_adapters.objects.files import FileObjects
from pulse_adapters.sqlite.backup.store import HomeBackups
from pulse_core import __version__
from pulse_core.home import HomeLayout
from pulse_core.model.home_status import LockHolder
from upulse_cli.wiring import shadow

WAIT = 10.0
"""Seconds: a daemon that refuses to start, and is started again and again, holds the home for moments."""


def backups_of(home: Home) -> HomeBackups:
    """The backups of this home."""

    @contextmanager
    def exclusive() -> Iterator[None]:
        home.create()
        with HomeLock(home.lock, __version__, wait=WAIT):
            yield

    return HomeBackups(home, SystemClock(), FileObjects(home.objects), exclusive)


def running_shadow(home: HomeLayout) -> LockHolder | None:
    """The shadow that runs beside the daemon of this home, if one does."""
    return shadow.running(Home(home.path))


def end_shadow(home: Home) -> str:
    """End the shadow if one runs; what is to be said of that, or nothing."""
    if (found := shadow.running(home)) is None:
        return ""
    shadow.end(found)
    return (
        f"the shadow (process {found.pid}) was ended, since it followed the log that was there; begin another"
        " one with: upulse shadow start"
    )
