"""A home whose daemon is down: what a new one gets, and what a person asks for, under the home's lock all the same."""

import asyncio
import os
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

from pulse_adapters.config.home import Home
from pulse_adapters.config.template import template
from pulse_adapters.host.clock import SystemClock
from pulse_adapters.ipc.lock import HomeLock
from pulse_adapters.objects.files import FileObjects
from pulse_adapters.sqlite.checkpoints import SqliteCheckpoints
from pulse_adapters.sqlite.events import SqliteEventLog
from pulse_adapters.sqlite.lost_rows import refuse_lost_rows
from pulse_adapters.sqlite.open_log import Opening
from pulse_adapters.workers.plain_file import replace_plain
from pulse_adapters.workers.users import user_name
from pulse_core import __version__
from pulse_core.app.context import HomeContext
from pulse_core.app.state import usable_settings
from pulse_core.model.errors import PulseError
from pulse_core.model.event import Draft
from pulse_core.model.json_types import Json
from pulse_core.model.payload import Role, parse
from pulse_core.record.gate import Gate, RecordedDraft
from pulse_core.record.view import View, advance_state, restore_from_checkpoints, save_checkpoints
from upulse_cli.wiring.executors import machine_executors

LOCK_WAIT = 2.0
LONG = 0.2
"""Seconds that the fold for one append takes before it is kept for the next one."""


def write_settings(home: Home, demo: bool) -> bool:
    """Write the commented settings; False if there are some."""
    if home.config.exists():
        return False
    try:  # whole or not at all: half of it would be left as it is by the next try
        replace_plain(home.config, template(demo).encode(), keep=True)
    except FileExistsError:
        return False
    except OSError as error:
        raise PulseError(f"{home.config} can't be written: {error.strerror}") from error
    return True


def make_log(home: HomeContext, *, look: bool = False) -> None:
    """Open the log once, so that the home has its id; a home in use has one.

    look: also into one that is there, since whoever was making it may have been killed.
    """
    if home.layout.events.exists() and (not look or _can_be_read(home)):
        return

    async def opened() -> None:
        with HomeLock(home.layout.lock, __version__, wait=LOCK_WAIT):
            async with offline_gate(home):
                pass

    asyncio.run(opened())


def _can_be_read(home: HomeContext) -> bool:
    try:
        with home.events() as log:
            log.head()
    except PulseError:
        return False
    return True


def make_engine(home: Home) -> Sequence[str]:
    """Make the repository for the user's rules, or what is missing of it; what was done, or why not, in sentences."""
    from pulse_adapters.git.create_repository import template_folder
    from pulse_adapters.git.errors import NoGit
    from pulse_adapters.git.git_command import (
        login_author,  # git is slow to import, and a home may be without an engine
    )
    from pulse_adapters.git.repository import Repository

    try:
        return Repository.create(home.path, template_folder(), login_author())[1]
    except NoGit as error:
        return (f"no engine for your own rules: {error}; the survival rules need none",)


def append_offline(
    home: HomeContext, drafts: Sequence[Mapping[str, Any]]
) -> Sequence[tuple[Mapping[str, Json], bool]]:
    """Implements `HomeContext.append_offline`: the log is opened and folded once for all of them."""
    if os.environ.get("PULSE_TOKEN"):
        raise PulseError("no daemon runs, and a run of an agent may change nothing but through one")
    wanted = [
        Draft(parse(one["kind"], dict(one["data"])), one["subject"], one["cause"], one["id"])
        for one in drafts
    ]

    user = user_name(os.getuid())  # on a loop a slow answer would not be waited for

    async def append() -> Sequence[tuple[Mapping[str, Json], bool]]:
        done: list[RecordedDraft] = []
        with HomeLock(home.layout.lock, __version__, wait=LOCK_WAIT):
            async with offline_gate(home) as gate:
                for draft in wanted:
                    done += await gate.append(Role.PERSON, user, [draft])
        return [(one.event.spelled(), one.existing) for one in done]

    return asyncio.run(append())


@asynccontextmanager
async def offline_gate(home: HomeContext) -> AsyncIterator[Gate]:
    """The gate of a home whose daemon is down; nothing is migrated. The caller holds the home's lock."""
    layout, view, settings = home.layout, View(), usable_settings(home)
    objects, how = FileObjects(layout.objects), Opening(may_migrate=False)
    clock = SystemClock()
    async with SqliteEventLog.open(
        layout.events, clock=clock, objects=objects, reserve=layout.reserve, how=how
    ) as log:
        await refuse_lost_rows(layout, log)
        checkpoints = SqliteCheckpoints(layout.state, log.host)
        began = time.monotonic()
        state = await restore_from_checkpoints(log, await checkpoints.load())
        view.reset_to(await advance_state(log, state, log.head.seq))
        took = time.monotonic() - began
        log.listen(view.on_events)
        executors = machine_executors(layout, lambda: settings, view).executors
        yield Gate(log, view, lambda: settings, executors, clock)
        if took > LONG:
            await save_checkpoints(log, checkpoints, view())
