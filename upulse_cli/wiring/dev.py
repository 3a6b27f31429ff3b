"""What a session of `upulse dev` needs of this machine."""

import asyncio
import os
import time
from collections.abc import AsyncGenerator, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from os.path import relpath

from pulse_adapters.host.system_watcher import SystemResource
from pulse_adapters.sandbox.copy_tree import PASSED_OVER
from pulse_core.app.context import HomeContext
from pulse_core.app.engine.context import STAGING, revision_named
from pulse_core.app.engine.dev_session import DevTarget, daemon_executor
from pulse_core.app.state import current_state, settings_for
from pulse_core.daemon import CurrentSettings
from pulse_core.model.vitals import Window
from pulse_core.ports.watcher import Watcher
from pulse_core.record.view import View
from upulse_cli.wiring.engine import workflow_context
from upulse_cli.wiring.executors import machine_executors

LOOK, REST = 0.05, 20
"""Seconds between two looks at the tree at least, and how many times as long as a look they are."""


def dev_target(home: HomeContext, *, does_execute: bool) -> DevTarget:
    """Staging of this home, tried. does_execute: by the daemon; raises PulseError if none runs."""
    engine = workflow_context(home, is_live=True)
    execute = daemon_executor(engine) if does_execute else None
    machine = partial(system_watcher_of, engine.home)
    return DevTarget(
        engine, saves, machine, revision_named(engine.repository, STAGING).path, lambda report: None, execute
    )


@contextmanager
def system_watcher_of(context: HomeContext) -> Iterator[Watcher]:
    """The sense of this machine's vital signs, as a daemon has it."""
    state = current_state(context)
    current_settings, view = CurrentSettings(settings_for(context, state).settings), View(state)
    acting = machine_executors(context.layout, current_settings, view)
    try:
        yield SystemResource(current_settings, lambda: 0.0, acting.spawner, acting.consumers, view, Window)
    finally:
        acting.close()


async def saves(path: str) -> AsyncGenerator[Collection[str], None]:
    """The files that were saved or removed, from the tree on, each time that some were and the next look finds no more.

    The files are looked at: inotify may grant nothing, and takes no word of a server's files.
    """
    known = latest = await asyncio.to_thread(_stamps, path)
    while True:
        began = time.monotonic()
        found = await asyncio.to_thread(_stamps, path)
        if found == latest != known:
            yield sorted({name for name, _ in known.items() ^ found.items()})
            known = found
        latest = found
        await asyncio.sleep(max(LOOK, REST * (time.monotonic() - began)))


def _stamps(path: str) -> Mapping[str, tuple[int, int, int]]:
    """What tells each file of a folder from what it was, but for hidden ones, caches, and copies that editors keep."""
    found = {}
    for folder, folders, names in os.walk(path):
        folders[:] = [name for name in folders if name[0] != "." and name not in PASSED_OVER]
        for name in names:
            with suppress(OSError):
                if name[0] != "." and name[-1] != "~":
                    stat = os.stat(file := f"{folder}/{name}")
                    found[relpath(file, path)] = stat.st_ino, stat.st_size, stat.st_mtime_ns
    return found
