"""Filters the engine's effects: which are refused, and how soon one may be requested again."""

from collections.abc import Mapping
from dataclasses import replace

from pulse_core.composition import declaration_of, is_reserved
from pulse_core.model.errors import describe_error
from pulse_core.model.kinds import Effect
from pulse_core.ports.engine import EngineFault, FoldResult
from pulse_core.projections.state import Snapshot


def filter_effects(fold_result: FoldResult, curr: Snapshot, defined: Mapping[str, str] = {}) -> FoldResult:
    """The fold result without effects that only survival may request, which are faults, and without those that are too soon.

    Otherwise a rule that requests the same effect in every tick would be woken by its settlement, for ever.
    defined: the place of each rule.
    """
    effects = fold_result.verdict.effects
    kept, faults = [], list(fold_result.faults)
    for effect in effects:
        try:
            why = refusal(effect, curr)
            is_kept = not why and not is_too_soon(effect, curr)
        except Exception as error:  # noqa: BLE001 - its params may hold anything: no executor has checked them yet
            why, is_kept = f"the effect {effect.key!r} can't be judged: {describe_error(error)}", False
        if why:
            place = defined.get(effect.rule, "")
            faults.append(EngineFault(f"rule:{effect.rule}", f"{why} ({place})" if place else why))
        if is_kept:
            kept.append(effect)
    if len(kept) == len(effects):
        return fold_result
    return fold_result._replace(
        verdict=replace(fold_result.verdict, effects=tuple(kept)), faults=tuple(faults)
    )


def refusal(effect: Effect, curr: Snapshot) -> str:
    """Why only survival and people may request this, and what would work instead; empty if rules may."""
    if is_reserved(effect.key):
        return f"the key {effect.key!r} is survival's own; take another one, as {'my:' + effect.key!r}"
    return declaration_of(effect.action).refusal(effect, curr)


def is_too_soon(effect: Effect, curr: Snapshot) -> bool:
    """Whether it may not be requested again yet: its key was settled lately, or its action declares so."""
    settled = curr.effects.settled_at.get(effect.key)
    if settled is not None and curr.now.since(settled) < curr.settings.engine.repeat:
        return True
    return declaration_of(effect.action).is_too_soon(effect, curr)
