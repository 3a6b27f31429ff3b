"""Trying a revision without bringing it into force: whether it loads, and what it would have done today."""

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING

from pulse_adapters.host.clock import SystemClock
from pulse_core.model.errors import PulseError
from pulse_core.model.event import Event
from pulse_core.ports import Loaded, ReservedNames, Revision
from pulse_core.ports.code_checks import GateFailed, GateSkipped
from pulse_core.projections import Snapshot
from upulse_cli.wiring.engine import hands_hosts, rule_hosts, settings_of

if TYPE_CHECKING:
    from pulse_adapters.config.home import Home
    from upulse_cli.engine.gates import Candidate

DAY_US = 86_400_000_000


def load(home: "Home", revision: Revision) -> Loaded:
    """What the hosts find in it. Raises CannotLoad; GateFailed for what the hands would leave out."""
    return asyncio.run(_loaded(home, revision))


async def _loaded(home: "Home", revision: Revision) -> Loaded:
    host = await rule_hosts(home).start(revision, Snapshot(0, SystemClock().now()), no_history, {})
    try:
        loaded = host.loaded
    finally:
        await host.close()
    if loaded.watchers or loaded.executors:
        await _taken_in_hand(home, revision)
    return loaded


async def _taken_in_hand(home: "Home", revision: Revision) -> None:
    memory = settings_of(home).engine.memory
    hands = await hands_hosts(home, SystemClock(), dict).start(
        revision, memory, ReservedNames(), lambda fault: None
    )
    await hands.close()
    if wrong := [fault for fault in hands.faults if not fault.whose.startswith("plugin:")]:
        raise GateFailed("\n".join(f"{fault.whose}: {fault.message}" for fault in wrong))


async def no_history(seq: int) -> AsyncIterator[Sequence[Event]]:
    """A log that holds nothing."""
    return
    yield ()


def replayed(candidate: "Candidate") -> str:
    """What would have been different in the last day."""
    from pulse_adapters.git.revisions import RevisionStore
    from upulse_cli.engine import changes, replaying

    if not candidate.previous:
        raise GateSkipped("there are no rules in force yet to compare with")
    path = RevisionStore(candidate.home.path).ensure(candidate.previous)
    old = Revision(candidate.previous, str(path))
    since = time.time_ns() // 1000 - DAY_US
    try:
        (before, after), _ = asyncio.run(
            replaying.replayed(candidate.home, rule_hosts(candidate.home), since, (old, candidate.revision))
        )
    except PulseError as error:
        raise GateSkipped(str(error)) from error
    if after.faults and not before.faults:
        raise GateFailed(f"over {after.ticks} recorded ticks: {next(iter(after.faults))}")
    return changes.in_words(before, after)
