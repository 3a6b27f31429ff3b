"""The two folds of a tick: the reflex, which nothing outside the package can delay, then the whole onion."""

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
    """What came of a tick's folds: the verdict, the effects that were recorded, and what each layer did."""

    verdict: Verdict
    emitted: tuple[Effect, ...]
    layers: tuple[LayerOutcome, ...]


class Folding:
    """Folds snapshots. survival: the built-in rules, outermost first; inside: plugins' and the engine's."""

    def __init__(
        self, survival: Sequence[Rule], inside: Sequence[Rule], submit: Submit, stopwatch: Stopwatch
    ) -> None:
        self.survival, self.inside = tuple(survival), tuple(inside)
        self.submit, self.stopwatch = submit, stopwatch

    async def __call__(self, prev: Snapshot, curr: Snapshot) -> Folded:
        """Fold the survival rules around a quiet heart and record; then, if there is more, the whole."""
        reflex = await self._fold(self.survival, prev, curr, frozenset())
        if not self.inside:
            return reflex
        answered = frozenset(effect.key for effect in reflex.emitted)
        whole = await self._fold((*self.survival, *self.inside), prev, curr, answered)
        verdict = whole.verdict.within(reflex.verdict.tick_ms)
        return Folded(verdict, (*reflex.emitted, *whole.emitted), whole.layers)

    async def _fold(
        self, rules: Sequence[Rule], prev: Snapshot, curr: Snapshot, answered: frozenset[str]
    ) -> Folded:
        trace: Trace = []
        verdict = await compose(rules, trace=trace, clock=self.stopwatch)(prev, curr)
        news = tuple(effect for effect in news_in(verdict, curr) if effect.key not in answered)
        if news:
            await self.submit(news)
        return Folded(verdict, news, tuple(trace))


def news_in(verdict: Verdict, curr: Snapshot) -> tuple[Effect, ...]:
    """The effects that are not open yet, each marked with the tick that wished it. Pure."""
    keys = curr.effects.keys
    return tuple(
        effect.model_copy(update={"tick": curr.tick}) for effect in verdict.effects if effect.key not in keys
    )
