"""The two folds of a snapshot: the reflex, which nothing outside the package can delay, and the whole onion."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from pulse_core.model.kinds import Effect
from pulse_core.model.tick import LayerOutcome
from pulse_core.model.verdict import Verdict
from pulse_core.ports import Fault, Insight
from pulse_core.projections import Snapshot
from pulse_core.rules import Rule, compose
from pulse_core.rules.onion import Stopwatch, Trace

Submit = Callable[[Sequence[Effect]], Awaitable[None]]
"""Gets effects recorded; returns when they are on disk. Raises LogUnavailable if they are not."""

Inside = Callable[[Snapshot, Snapshot], Awaitable[Insight]]
"""Folds what is inside the survival rules: plugins' rules and the engine's. Never raises; reports its own faults."""


@dataclass(frozen=True, slots=True)
class Folded:
    """What came of a fold: the verdict, the effects that were recorded, what each layer did, and what is to be told."""

    verdict: Verdict
    emitted: tuple[Effect, ...] = ()
    layers: tuple[LayerOutcome, ...] = ()
    faults: tuple[Fault, ...] = ()


class Folding:
    """Folds snapshots. survival: the built-in rules, outermost first; inside: what they are folded around."""

    def __init__(
        self, survival: Sequence[Rule], inside: Inside | None, submit: Submit, stopwatch: Stopwatch
    ) -> None:
        self.survival, self.inside = tuple(survival), inside
        self.submit, self.stopwatch = submit, stopwatch

    async def reflex(self, prev: Snapshot, curr: Snapshot) -> Folded:
        """Fold the survival rules around a quiet heart, and record what they wish."""
        trace: Trace = []
        verdict = await compose(self.survival, trace=trace, clock=self.stopwatch)(prev, curr)
        return Folded(verdict, await self._submitted(verdict.effects, curr), tuple(trace), faults_in(trace))

    async def whole(self, prev: Snapshot, curr: Snapshot) -> Folded:
        """Fold the survival rules around the others, and record what those wish and the survival rules let pass.

        What the survival rules themselves wish is left out: the reflex of this snapshot has seen to it.
        """
        trace: Trace = []
        inner: list[LayerOutcome] = []
        theirs: set[int] = set()

        async def heart(prev: Snapshot, curr: Snapshot) -> Verdict:
            insight = await self.inside(prev, curr) if self.inside else Insight()
            verdict = tamed(insight.verdict)
            inner[:] = insight.layers
            theirs.update(id(effect) for effect in verdict.effects)
            return verdict

        verdict = await compose(self.survival, heart, trace, self.stopwatch)(prev, curr)
        passed = [effect for effect in verdict.effects if id(effect) in theirs]
        emitted = await self._submitted(passed, curr)
        return Folded(verdict, emitted, (*inner, *trace), faults_in(trace))

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


def faults_in(trace: Sequence[LayerOutcome]) -> tuple[Fault, ...]:
    """What rules raised."""
    return tuple(Fault(f"rule:{one.rule}", one.notes[0]) for one in trace if one.outcome == "error")


def in_process(rules: Sequence[Rule], stopwatch: Stopwatch, failed: Callable[[str, str], None]) -> Inside:
    """These rules, trusted and folded right here: for tests and benchmarks, since the engine's have a process."""

    async def inside(prev: Snapshot, curr: Snapshot) -> Insight:
        trace: Trace = []
        verdict = await compose(rules, trace=trace, clock=stopwatch)(prev, curr)
        for fault in faults_in(trace):
            failed(*fault)
        return Insight(verdict, tuple(trace))

    return inside
