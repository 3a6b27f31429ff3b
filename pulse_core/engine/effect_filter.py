"""What the engine's wishes must not touch, and how often they may come back."""

from dataclasses import replace

from pulse_core.composition import declaration_of, is_reserved
from pulse_core.model.kinds import Effect
from pulse_core.ports import EngineFault, FoldResult
from pulse_core.projections import Snapshot


def filter_effects(fold_result: FoldResult, curr: Snapshot) -> FoldResult:
    """The insight without effects that are survival's alone, which are faults, and without those that are too soon.

    A rule that wishes the same in every tick would otherwise be answered, and woken by the answer, for ever.
    """
    effects = fold_result.verdict.effects
    kept, faults = [], list(fold_result.faults)
    for effect in effects:
        if why := refusal(effect, curr):
            faults.append(EngineFault(f"rule:{effect.rule}", why))
        elif not is_too_soon(effect, curr):
            kept.append(effect)
    if len(kept) == len(effects):
        return fold_result
    return fold_result._replace(
        verdict=replace(fold_result.verdict, effects=tuple(kept)), faults=tuple(faults)
    )


def refusal(effect: Effect, curr: Snapshot) -> str:
    """Why nobody but survival and people may wish this, with what would work instead; or nothing."""
    if is_reserved(effect.key):
        return f"the key {effect.key!r} is survival's own; take another one, as {'my:' + effect.key!r}"
    return declaration_of(effect.action).refusal(effect, curr)


def is_too_soon(effect: Effect, curr: Snapshot) -> bool:
    """Whether it may not be wished again yet: its key was settled lately, or its action declares so."""
    settled = curr.effects.settled_at.get(effect.key)
    if settled is not None and curr.now.since(settled) < curr.settings.engine.repeat:
        return True
    return declaration_of(effect.action).is_too_soon(effect, curr)
