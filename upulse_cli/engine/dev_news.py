"""What `upulse dev` tells an author: what was loaded or refused, what each tick and each watcher brought."""

from collections.abc import Callable, Collection, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from pydantic import BaseModel

from pulse_core.composition import complaint
from pulse_core.model.kinds import Effect
from pulse_core.model.tick import LayerOutcome
from pulse_core.model.vitals import Sample
from pulse_core.ports import EngineFault, FoldResult, Loaded
from pulse_core.projections import Snapshot
from upulse_cli.engine.wishes import through_survival

DETERMINISM = "determinism"
"""Whose a fault is that only makes a replay differ."""


class Began(NamedTuple):
    """Rules are live. took: seconds since the save was noticed."""

    loaded: Loaded
    files: Collection[str]
    took: float


class Refused(NamedTuple):
    """What is saved can't be loaded; the rules before it go on, if there were any."""

    words: str
    files: Collection[str]
    goes_on: bool


class Wish(NamedTuple):
    """An effect, and what would become of it: `new`, `open` (its key is open already), `held` by survival, or `refused`.

    why: it would be refused.
    """

    effect: Effect
    state: str
    why: str = ""


class Seen(NamedTuple):
    """What the rules made of a snapshot. layers: outermost first; is_again: they saw it before, as it was saved."""

    snapshot: Snapshot
    layers: Sequence[LayerOutcome]
    wishes: Sequence[Wish]
    faults: Sequence[EngineFault]
    warnings: Sequence[str]
    took: float
    is_again: bool


class Remark(NamedTuple):
    """Anything else that a person should know."""

    words: str


class Sensed(NamedTuple):
    """A watcher of staging brought a sample. wakes: whether it is worth a tick at once, as the first one is."""

    watcher: str
    sample: Sample
    wakes: bool


class Broke(NamedTuple):
    """A watcher or an executor of staging failed."""

    fault: EngineFault


News = Began | Refused | Seen | Sensed | Broke | Remark
Tell = Callable[[News], None]


def seen_by(
    insight: FoldResult,
    prev: Snapshot,
    curr: Snapshot,
    took: float,
    is_again: bool,
    own: Mapping[str, type[BaseModel]] = MappingProxyType({}),
) -> Seen:
    """What rules said, as it is told. own: params of the tree's own executors."""
    effects, open_ = insight.verdict.effects, curr.effects.keys
    passed = {effect.key for effect in through_survival(prev, curr, insight.verdict)} if effects else ()

    def wish(effect: Effect) -> Wish:
        if why := complaint(effect, own):
            return Wish(effect, "refused", why)
        return Wish(effect, "held" if effect.key not in passed else "open" if effect.key in open_ else "new")

    return Seen(
        curr,
        insight.layers[::-1],
        [wish(effect) for effect in effects],
        [fault for fault in insight.faults if fault.whose != DETERMINISM],
        [fault.message for fault in insight.faults if fault.whose == DETERMINISM],
        took,
        is_again,
    )
