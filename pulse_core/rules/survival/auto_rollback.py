"""A promote whose rules raise errors while it is watched is taken back."""

from pulse_core.model.verdict import Verdict
from pulse_core.projections import Snapshot
from pulse_core.rules.onion import Inner
from pulse_core.rules.survival.rollback import escalated, is_asked, rollback


async def auto_rollback(prev: Snapshot, curr: Snapshot, inner: Inner) -> Verdict:
    """Roll the engine back, and let nothing inside speak in this tick, when its rules err too often."""
    why = harm(curr)
    if why and not is_asked(curr.engine):
        return Verdict((rollback(why, curr),), notes=(why,))
    verdict = await inner(prev, curr)
    noted = verdict.noting(why or watched(curr)) if why or watched(curr) else verdict
    later = curr.settings.rollback.patience // 1000 if is_asked(curr.engine) else verdict.tick_ms
    return noted.plus(*escalated(curr)).within(later)


def harm(curr: Snapshot) -> str:
    """Why the commit in force is to be taken back, or nothing: enough errors while it was watched."""
    engine = curr.engine
    if engine.promoted is None or not engine.previous:
        return ""
    counted = [at for at in engine.errors if at.since(engine.promoted) <= engine.watch_us]
    if len(counted) < curr.settings.rollback.errors:
        return ""
    return f"its rules raised {len(counted)} errors while it was watched"


def watched(curr: Snapshot) -> str:
    """How the commit that is being watched does, or nothing if none is."""
    engine = curr.engine
    if engine.promoted is None or curr.now.since(engine.promoted) > engine.watch_us:
        return ""
    allowed = curr.settings.rollback.errors
    return f"{engine.commit[:12]} is watched: {len(engine.errors)} of {allowed} errors"
