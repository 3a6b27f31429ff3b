"""The backups of a home on this machine."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from pulse_adapters.config.home import Home
from pulse_adapters.host.clock import SystemClock
from pulse_adapters.ipc.lock import HomeLock
from pulse_adapters.objects.files import FileObjects
from pulse_adapters.sqlite.backup.store import HomeBackups
from pulse_core import __version__
from pulse_core.home import HomeLayout
from upulse_cli.wiring.verify import last_anchored

WAIT = 10.0
"""Seconds: a daemon that refuses to start, and is started again and again, holds the home for moments."""


def backups_of(home: HomeLayout, engine_fault: Callable[[], str] = lambda: "") -> HomeBackups:
    """The backups of this home. engine_fault: what is wrong with its engine."""

    @contextmanager
    def exclusive() -> Iterator[None]:
        Home(home.path).create()
        with HomeLock(home.lock, __version__, wait=WAIT):
            yield

    clock, objects = SystemClock(), FileObjects(home.objects)
    return HomeBackups(home, clock, objects, exclusive, lambda host: last_anchored(home, host), engine_fault)
