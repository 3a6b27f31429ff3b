"""What the user's rules say of one snapshot: a host is started on a revision, asked once, and ended."""

import asyncio
import json
from collections.abc import Mapping, Sequence
from functools import partial
from typing import NamedTuple

from pulse_core.app.context import HomeContext
from pulse_core.app.engine.context import WorkflowContext
from pulse_core.app.engine.recorded_ticks import history
from pulse_core.engine.effect_filter import apart
from pulse_core.engine.user_checkpoints import FORMAT, PREFIX
from pulse_core.model.errors import NoHome, PulseError
from pulse_core.ports import FoldResult, Revision, UserProjectionState
from pulse_core.projections import Snapshot


class UserRulesResult(NamedTuple):
    """What came of the fold, None if nobody could be asked; and the words that must go with it."""

    result: FoldResult | None = None
    caveats: Sequence[str] = ()


def evaluate_user_rules(engine: WorkflowContext, snapshot: Snapshot, word: str = "") -> UserRulesResult:
    """What a revision says (if none is named, the one in force then); a fault of theirs is a caveat.

    Raises PulseError for a name that is none.
    """
    if not snapshot.settings.engine.enabled and not word:
        return UserRulesResult(caveats=["[engine] enabled is false: the user's rules are not asked"])
    named = engine.revision(word) if word else None
    try:
        revision = named or engine.revision(snapshot.engine.commit or engine.repository.head())
        result = asyncio.run(_folded(engine, revision, snapshot))
    except PulseError as error:
        return UserRulesResult(caveats=[f"the user's rules could not be asked: {error}"])
    return UserRulesResult(result, [f"{fault.whose}: {fault.message}" for fault in result.faults])


async def _folded(engine: WorkflowContext, revision: Revision, snapshot: Snapshot) -> FoldResult:
    past, kept = partial(history, engine.home), kept_user_projections(engine.home)
    host = await engine.rule_hosts.start(revision, snapshot, past, kept)
    try:
        if snapshot.engine.commit == revision.commit:
            host.quarantine(tuple(snapshot.engine.quarantined))
        return apart(await host.fold(snapshot, snapshot), snapshot)
    finally:
        await host.close()


def kept_user_projections(home: HomeContext) -> Mapping[str, UserProjectionState]:
    """The authors' projections as the daemon kept them last, if that was of this log."""
    found = home.checkpoints()
    names = [name for name, one in found.items() if name.startswith(PREFIX) and one.version == FORMAT]
    if not names:
        return {}
    try:
        with home.events() as log:
            sound = [name for name in names if log.chain_at(found[name].head.seq) == found[name].head.chain]
    except NoHome:
        return {}
    return {
        name.removeprefix(PREFIX): UserProjectionState(version, found[name].head.seq, state)
        for name in sound
        for version, state in [json.loads(found[name].state)]
    }
