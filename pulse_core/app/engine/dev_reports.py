"""What `upulse dev` tells an author: what was loaded or refused, what each tick and each watcher brought."""

from collections.abc import Callable, Collection, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from pydantic import BaseModel

from pulse_core.app.engine.effect_diff import allowed_by_survival
from pulse_core.composition import effect_fault
from pulse_core.engine.effect_filter import KEY_OPEN
from pulse_core.model.kinds import Effect
from pulse_core.model.tick import LayerOutcome
from pulse_core.model.verdict import WithheldEffect
from pulse_core.model.vitals import Sample
from pulse_core.ports.engine import ADVICE, EngineFault, FoldResult, LoadedRevision
from pulse_core.projections.state import Snapshot
from pulse_core.settings.settings import Settings


class RulesLoaded(NamedTuple):
    """Rules are live. took: seconds since the save was noticed."""

    loaded: LoadedRevision
    files: Collection[str]
    took: float


class LoadRefused(NamedTuple):
    """What is saved can't be loaded; the rules before it go on, if there were any."""

    words: str
    files: Collection[str]
    goes_on: bool


class TriedEffect(NamedTuple):
    """An effect, and what would become of it: `new`, `open` (its key is open already), `held` by survival,
    `withheld` since it comes too soon or is survival's own, or `refused` by its executor.

    why: it comes to nothing.
    """

    effect: Effect
    state: str
    why: str = ""


class TickSeen(NamedTuple):
    """What the rules made of a snapshot. layers: outermost first; is_again: they saw it before, as it was saved."""

    snapshot: Snapshot
    layers: Sequence[LayerOutcome]
    wishes: Sequence[TriedEffect]
    faults: Sequence[EngineFault]
    warnings: Sequence[str]
    took: float
    is_again: bool


class DevRemark(NamedTuple):
    """Anything else that a person should know."""

    words: str


class SampleTaken(NamedTuple):
    """A watcher of staging brought a sample. wakes: whether it is worth a tick at once, as the first one is."""

    watcher: str
    sample: Sample
    wakes: bool


DevReport = RulesLoaded | LoadRefused | TickSeen | SampleTaken | EngineFault | DevRemark
"""A fault by itself is that of a watcher or an executor of staging."""
Tell = Callable[[DevReport], None]
Refusal = Callable[[Effect, Settings], str]
"""Why the executor of an effect would refuse it with these settings; empty if it would not."""


def nothing_refused(effect: Effect, settings: Settings) -> str:
    """Of what has no executor that could be asked."""
    return ""


def tick_report(
    fold_result: FoldResult,
    prev: Snapshot,
    curr: Snapshot,
    took: float,
    is_again: bool,
    own: Mapping[str, type[BaseModel]] = MappingProxyType({}),
    refusal: Refusal = nothing_refused,
) -> TickSeen:
    """What rules said, as it is told. own: params of the tree's own executors; refusal: as in `DevTarget`."""
    effects = fold_result.verdict.effects
    held = list[WithheldEffect]()
    passed = allowed_by_survival(prev, curr, fold_result.verdict, held) if effects else ()
    held_by = {one.key: "survival lets nothing through" for one in effects}
    held_by |= {one.effect.key: one.why for one in held} | {one.key: "" for one in passed}

    def wish(effect: Effect) -> TriedEffect:
        if why := effect_fault(effect, own) or refusal(effect, curr.settings):
            return TriedEffect(effect, "refused", why)
        if why := held_by.get(effect.key, ""):
            return TriedEffect(effect, "held", why)
        if curr.effects.excludes(effect):
            return TriedEffect(effect, "open", KEY_OPEN)
        return TriedEffect(effect, "new")

    return TickSeen(
        curr,
        fold_result.layers[::-1],
        [
            *map(wish, effects),
            *(TriedEffect(one.effect, "withheld", one.why) for one in fold_result.withheld),
        ],
        [fault for fault in fold_result.faults if fault.whose != ADVICE],
        [fault.message for fault in fold_result.faults if fault.whose == ADVICE],
        took,
        is_again,
    )
