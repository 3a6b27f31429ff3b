"""Checks a pending effect again just before it begins."""

from pulse_core.composition import declaration_of
from pulse_core.model.moment import Moment
from pulse_core.projections import OpenEffect, State
from pulse_core.projections.conditions import FOR


def objection(effect: OpenEffect, state: State, now: Moment) -> str | None:
    """Why the effect must be cancelled instead of begun, or None if it is still valid. Pure."""
    if effect.cancel:
        return f"cancelled by {effect.cancel}"
    wish, wished = effect.wish, effect.event
    if wish.not_after is not None and now.since(wished.moment) > wish.not_after - wished.at:
        return "its time was over before it could be begun"
    if not wish.survival:
        return None
    condition = wish.params.get(FOR)
    if condition and state.conditions[str(condition)] is None:
        return f"{condition} is over in the meantime"
    return declaration_of(wish.action).objection(wish, state, now) or None


def begin_wait(effect: OpenEffect, now: Moment, cooldown_us: int, settled: Moment | None) -> int:
    """Microseconds until the effect may be begun; 0 if it may be now. Pure."""
    retry = effect.retry_us - now.since(effect.moment) if effect.retry_us else 0
    cooling = cooldown_us - now.since(settled) if cooldown_us and settled else 0
    return max(0, retry, cooling)
