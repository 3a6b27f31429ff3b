"""What the engine's wishes must not touch, and how often they may come back."""

from dataclasses import replace

from pulse_core.actions import declared
from pulse_core.actions.reserved_keys import is_reserved
from pulse_core.model.kinds import Effect
from pulse_core.ports import EngineFault, FoldResult
from pulse_core.projections import Snapshot


def apart(insight: FoldResult, curr: Snapshot) -> FoldResult:
    """The insight without effects that are survival's alone, which are faults, and without those that are too soon.

    A rule that wishes the same in every tick would otherwise be answered, and woken by the answer, for ever.
    """
    effects = insight.verdict.effects
    refused = {id(effect): why for effect in effects if (why := refusal(effect, curr))}
    kept = tuple(one for one in effects if id(one) not in refused and not is_too_soon(one, curr))
    if len(kept) == len(effects):
        return insight
    faults = tuple(EngineFault(f"rule:{one.rule}", refused[id(one)]) for one in effects if id(one) in refused)
    return insight._replace(verdict=replace(insight.verdict, effects=kept), faults=(*insight.faults, *faults))


def refusal(effect: Effect, curr: Snapshot) -> str:
    """Why nobody but survival and people may wish this, with what would work instead; or nothing."""
    if is_reserved(effect.key):
        return f"the key {effect.key!r} is survival's own; take another one, as {'my:' + effect.key!r}"
    return declared(effect.action).refusal(effect, curr)


def is_too_soon(effect: Effect, curr: Snapshot) -> bool:
    """Whether it may not be wished again yet: its key was settled lately, or its action declares so."""
    settled = curr.effects.settled_at.get(effect.key)
    if settled is not None and curr.now.since(settled) < curr.settings.engine.repeat:
        return True
    return declared(effect.action).is_too_soon(effect, curr)
