"""Rollbacks of the engine: when one may be requested, and the notice if it fails."""

from pulse_core.model.actions import ROLLBACK_ENGINE
from pulse_core.model.kinds import Effect
from pulse_core.projections import Engine, Snapshot
from pulse_core.rules.survival.notices import notify_over, notify_unless_told

TOPIC = "engine:rollback"


def is_rollback_requested(engine: Engine) -> bool:
    """Whether a rollback of the commit in force was requested already."""
    return engine.asked is not None


def rollback_effect(why: str, curr: Snapshot) -> Effect:
    """The effect that rolls back to the commit before the one in force."""
    engine = curr.engine
    return Effect(
        action=ROLLBACK_ENGINE,
        key=ROLLBACK_ENGINE,
        params={"to": engine.previous, "reject": engine.commit, "why": why},
        reason=f"{engine.commit[:12]} is taken back: {why}",
        survival=True,
    )


def rollback_notices(curr: Snapshot) -> tuple[Effect, ...]:
    """Notify a person of a rollback that was requested and is not done; after that notice, that it is done."""
    engine = curr.engine
    if engine.asked is None:
        return notify_over(TOPIC, "the engine's rollback", f"{engine.commit[:12]} is in force", curr)
    if curr.now.since(engine.asked) < curr.settings.rollback.patience:
        return ()
    text = (
        f"{engine.commit[:12]} does harm and was to be replaced by {engine.previous[:12]}, but still is in force;"
        " look at it with: upulse effect list, and stop the engine's rules with: upulse pause"
    )
    return notify_unless_told(TOPIC, "the engine could not be rolled back", text, curr)
