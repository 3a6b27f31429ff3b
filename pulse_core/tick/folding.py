"""The two folds of a snapshot: the reflex, which nothing outside the package can delay, and the whole onion."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from pulse_core.model.kinds import Effect
from pulse_core.model.tick import LayerOutcome
from pulse_core.model.verdict import Verdict
from pulse_core.projections import Snapshot
from pulse_core.rules import Rule, compose
from pulse_core.rules.onion import Stopwatch, Trace

Submit = Callable[[Sequence[Effect]], Awaitable[None]]
"""Gets effects recorded; returns when they are on disk. Raises LogUnavailable if they are not."""


@dataclass(frozen=True, slots=True)
class Folded:
    """What came of a fold: the verdict, the effects that were recorded, and what each layer did."""

    verdict: Verdict
    emitted: tuple[Effect, ...] = ()
    layers: tuple[LayerOutcome, ...] = ()


class Folding:
    """Folds snapshots. survival: the built-in rules, outermost first; inside: plugins' and the engine's."""

    def __init__(
        self, survival: Sequence[Rule], inside: Sequence[Rule], submit: Submit, stopwatch: Stopwatch
    ) -> None:
        self.survival, self.inside = tuple(survival), tuple(inside)
        self.submit, self.stopwatch = submit, stopwatch

    async def reflex(self, prev: Snapshot, curr: Snapshot) -> Folded:
        """Fold the survival rules around a quiet heart, and record what they wish."""
        trace: Trace = []
        verdict = await compose(self.survival, trace=trace, clock=self.stopwatch)(prev, curr)
        return Folded(verdict, await self._submitted(verdict.effects, curr), tuple(trace))

    async def whole(self, prev: Snapshot, curr: Snapshot) -> Folded:
        """Fold the survival rules around the others, and record what those wish and the survival rules let pass.

        What the survival rules themselves wish is left out: the reflex of this snapshot has seen to it.
        """
        trace: Trace = []
        core = compose(self.inside, trace=trace, clock=self.stopwatch)
        theirs: set[int] = set()

        async def heart(prev: Snapshot, curr: Snapshot) -> Verdict:
            verdict = tamed(await core(prev, curr))
            theirs.update(id(effect) for effect in verdict.effects)
            return verdict

        verdict = await compose(self.survival, heart, trace, self.stopwatch)(prev, curr)
        passed = [effect for effect in verdict.effects if id(effect) in theirs]
        return Folded(verdict, await self._submitted(passed, curr), tuple(trace))

    async def _submitted(self, effects: Sequence[Effect], curr: Snapshot) -> tuple[Effect, ...]:
        """The effects that are not open yet, each with the tick that wished it, recorded."""
        keys = curr.effects.keys
        news = tuple(
            effect.model_copy(update={"tick": curr.tick}) for effect in effects if effect.key not in keys
        )
        if news:
            await self.submit(news)
        return news


def tamed(verdict: Verdict) -> Verdict:
    """The verdict of rules from outside the package: none of their effects is survival's."""
    effects = tuple(
        effect.model_copy(update={"survival": False}) if effect.survival else effect
        for effect in verdict.effects
    )
    return Verdict(effects, verdict.tick_ms, verdict.notes)
