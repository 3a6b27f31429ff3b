"""Filters the engine's effects: which are refused, and how soon one may be requested again."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from pulse_core.composition import declaration_of, is_of_package
from pulse_core.model.durations import duration_text
from pulse_core.model.errors import describe_error
from pulse_core.model.kinds import Effect
from pulse_core.model.tick import LayerOutcome
from pulse_core.model.verdict import WithheldEffect
from pulse_core.ports.engine import EngineFault, FoldResult
from pulse_core.projections.state import Snapshot

KEY_OPEN = "an effect with this key is open already"
MOST_NOTES = 10
"""Effects of a rule that are noted in one tick."""


def filter_effects(fold_result: FoldResult, curr: Snapshot, defined: Mapping[str, str] = {}) -> FoldResult:
    """The fold result without effects that only survival may request, which are faults, and without those that are too soon.

    Otherwise a rule that requests the same effect in every tick would be woken by its settlement, for ever. Why one was
    withheld, or would not be recorded since its key is open, is among the notes of its rule.
    defined: the place of each rule.
    """
    kept, faults = [], list(fold_result.faults)
    withheld, notes = list[WithheldEffect](), list[tuple[str, str]]()
    for effect in fold_result.verdict.effects:
        try:
            refused = refusal(effect, curr)
            why = refused or too_soon(effect, curr)
        except Exception as error:  # noqa: BLE001 - its params may hold anything: no executor has checked them yet
            refused = why = f"the effect {effect.key!r} can't be judged: {describe_error(error)}"
        if refused:
            place = defined.get(effect.rule, "")
            faults.append(EngineFault(f"rule:{effect.rule}", f"{why} ({place})" if place else why))
        if why:
            withheld.append(WithheldEffect(effect, why))
        else:
            kept.append(effect)
            why = KEY_OPEN if curr.effects.excludes(effect) else ""
        if why:
            notes.append((effect.rule, f"{effect.key} is not requested: {why}"))
    if not notes:
        return fold_result
    return fold_result._replace(
        verdict=replace(fold_result.verdict, effects=tuple(kept)),
        faults=tuple(faults),
        layers=tuple(_noting(layer, notes) for layer in fold_result.layers),
        withheld=tuple(withheld),
    )


def _noting(layer: LayerOutcome, notes: Sequence[tuple[str, str]]) -> LayerOutcome:
    more = tuple(note for rule, note in notes if rule == layer.rule)[:MOST_NOTES]
    return replace(layer, notes=(*layer.notes, *more)) if more else layer


def refusal(effect: Effect, curr: Snapshot) -> str:
    """Why only Pulse's own rules and people may request this, and what would work instead; empty if rules may."""
    if is_of_package(effect.key):
        return f"the key {effect.key!r} is Pulse's own; take another one, as {'my:' + effect.key!r}"
    return declaration_of(effect.action).refusal(effect, curr)


def too_soon(effect: Effect, curr: Snapshot) -> str:
    """Why it may not be requested again yet: its key was settled lately, or its action declares so; empty if it may."""
    repeat, settled = curr.settings.engine.repeat, curr.effects.settled_at.get(effect.key)
    if settled is not None and curr.now.since(settled) < repeat:
        return f"the last one was settled less than {duration_text(repeat)} ago ([engine] repeat)"
    return declaration_of(effect.action).too_soon(effect, curr)
