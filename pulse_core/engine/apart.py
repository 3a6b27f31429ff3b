"""What the engine's wishes must not touch, and how often they may come back."""

from dataclasses import replace

from pulse_core.model.kinds import Effect
from pulse_core.ports import Fault, Insight
from pulse_core.projections import Snapshot
from pulse_core.projections.notices import ACTION, PREFIX
from pulse_core.rules.survival.keys import is_reserved
from pulse_core.rules.survival.telling import is_known


def apart(insight: Insight, curr: Snapshot) -> Insight:
    """The insight without effects whose keys are survival's, which are faults, and without those that are too soon.

    A rule that wishes the same in every tick would otherwise be answered, and woken by the answer, for ever.
    """
    effects = insight.verdict.effects
    taken = [effect for effect in effects if is_reserved(effect.key)]
    kept = tuple(one for one in effects if not is_reserved(one.key) and not is_too_soon(one, curr))
    if len(kept) == len(effects):
        return insight
    faults = tuple(Fault(f"rule:{effect.rule}", words(effect)) for effect in taken)
    return insight._replace(verdict=replace(insight.verdict, effects=kept), faults=(*insight.faults, *faults))


def is_too_soon(effect: Effect, curr: Snapshot) -> bool:
    """Whether its key was settled so lately that it may not be wished again yet, or says what people know."""
    settled = curr.effects.settled_at.get(effect.key)
    if settled is not None and curr.now.since(settled) < curr.settings.engine.repeat:
        return True
    is_over = bool(effect.params.get("over", False))
    return effect.action == ACTION and is_known(effect.key.removeprefix(PREFIX), curr, is_over)


def words(effect: Effect) -> str:
    """What would work instead."""
    return f"the key {effect.key!r} is survival's own; take another one, as {'my:' + effect.key!r}"
