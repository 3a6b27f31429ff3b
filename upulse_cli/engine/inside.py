"""What the user's rules say of one snapshot: a host is started on a revision, asked once, and ended."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import NamedTuple

from pulse_adapters.config.home import Home
from pulse_adapters.git.repository import Repository
from pulse_adapters.sqlite.checkpoints import read_checkpoints
from pulse_adapters.sqlite.event_reader import SqliteEventReader
from pulse_core.engine.effect_filter import apart
from pulse_core.engine.user_checkpoints import FORMAT, PREFIX
from pulse_core.model.errors import PulseError
from pulse_core.model.event import Event
from pulse_core.ports import FoldResult, Revision, UserProjectionState
from pulse_core.projections import Snapshot
from upulse_cli.engine.comparing import revision_called
from upulse_cli.engine.present import history_of
from upulse_cli.wiring.engine import rule_hosts


class Inside(NamedTuple):
    """The insight, none if nobody could be asked; and the words that must go with it."""

    insight: FoldResult | None = None
    caveats: Sequence[str] = ()


def inside(home: Home, snapshot: Snapshot, word: str = "") -> Inside:
    """What a revision says (if none is named, the one in force then); a fault of theirs is a caveat.

    Raises PulseError for a name that is none.
    """
    if not (home.path / "engine" / ".git").exists():
        return Inside()
    if not snapshot.settings.engine.enabled and not word:
        return Inside(caveats=["[engine] enabled is false: the user's rules are not asked"])
    named = revision_called(home, word) if word else None
    try:
        revision = named or revision_called(home, snapshot.engine.commit or Repository(home.path).head())
        insight = asyncio.run(_asked(home, revision, snapshot))
    except PulseError as error:
        return Inside(caveats=[f"the user's rules could not be asked: {error}"])
    return Inside(insight, [f"{fault.whose}: {fault.message}" for fault in insight.faults])


async def _asked(home: Home, revision: Revision, snapshot: Snapshot) -> FoldResult:
    def history(seq: int) -> AsyncIterator[Sequence[Event]]:
        return history_of(home, seq)

    host = await rule_hosts(home).start(revision, snapshot, history, kept_of(home))
    try:
        if snapshot.engine.commit == revision.commit:
            host.quarantine(tuple(snapshot.engine.quarantined))
        return apart(await host.fold(snapshot, snapshot), snapshot)
    finally:
        await host.close()


def kept_of(home: Home) -> Mapping[str, UserProjectionState]:
    """The authors' projections as the daemon kept them last, if that was of this log."""
    found = read_checkpoints(home.state)
    names = [name for name, one in found.items() if name.startswith(PREFIX) and one.version == FORMAT]
    if not names or not home.events.exists():
        return {}
    with SqliteEventReader(home.path) as log:
        sound = [name for name in names if log.chain_at(found[name].head.seq) == found[name].head.chain]
    return {
        name.removeprefix(PREFIX): UserProjectionState(version, found[name].head.seq, state)
        for name in sound
        for version, state in [json.loads(found[name].state)]
    }
