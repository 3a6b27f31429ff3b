"""Trying a revision without bringing it into force: whether it loads, and what it would have done today."""

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING

from pulse_adapters.host.clock import SystemClock
from pulse_core.model.errors import PulseError
from pulse_core.model.event import Event
from pulse_core.ports import Loaded, Revision
from pulse_core.projections import Snapshot
from upulse_cli.engine.gates import GateFailed, Skipped
from upulse_cli.engine.housing import hosts_of

if TYPE_CHECKING:
    from pulse_adapters.config.home import Home
    from upulse_cli.engine.gates import Candidate

DAY_US = 86_400_000_000


def load(home: "Home", revision: Revision) -> Loaded:
    """What a host finds in it; raises CannotLoad."""
    return asyncio.run(_loaded(home, revision))


async def _loaded(home: "Home", revision: Revision) -> Loaded:
    host = await hosts_of(home).start(revision, Snapshot(0, SystemClock().now()), no_history, {})
    try:
        return host.loaded
    finally:
        await host.close()


async def no_history(seq: int) -> AsyncIterator[Sequence[Event]]:
    """A log that holds nothing."""
    return
    yield ()


def replayed(candidate: "Candidate") -> str:
    """What would have been different in the last day."""
    from pulse_adapters.git.revisions import Revisions
    from upulse_cli.engine import changes, replaying

    if not candidate.previous:
        raise Skipped("there are no rules in force yet to compare with")
    path = Revisions(candidate.home.path).ensure(candidate.previous)
    old = Revision(candidate.previous, str(path))
    since = time.time_ns() // 1000 - DAY_US
    try:
        (before, after), _ = asyncio.run(
            replaying.replayed(candidate.home, hosts_of(candidate.home), since, (old, candidate.revision))
        )
    except PulseError as error:
        raise Skipped(str(error)) from error
    if after.faults and not before.faults:
        raise GateFailed(f"over {after.ticks} recorded ticks: {next(iter(after.faults))}")
    return changes.in_words(before, after)
