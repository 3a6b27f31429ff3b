"""The two folds of a snapshot: the reflex, which nothing outside the package can delay, and the whole onion.

Theory. Rules nest: an outer rule sees and may change the effects of the inner ones. Survival rules are outermost, so that
they can hold back, bypass and limit everybody else. Folded once, that order has a price: an outer rule has no verdict
before the inner ones have answered, and those may take their whole deadline (250 ms) or hang. So there are two folds.

The *reflex* folds the survival rules around a rule without effects. Its effects are recorded at once.

The *whole* fold runs the same survival rules around capabilities, plugins and the engine, beside the tick loop, and
survival's own effects are dropped from its verdict: the reflex of that snapshot has recorded them already. What is left
are the inner rules' effects as survival lets them pass, so pause, silences and budgets hold for them, too. While a whole
fold is busy, reflexes go on, and the newest snapshot waits; those in between are never folded whole. That is why `prev`
of a whole fold is the last snapshot that *it* saw, and not the one of the tick before: a change is never skipped.

Where nothing but capabilities has rules, most ticks need no whole fold: a tick of the timer that finds every projection and
the settings as their last fold has seen them would hear the same answer, unless the time has come that they named in it,
or survival has held something back. So a capability that nobody uses costs a tick nothing.

An effect of the whole fold may be recorded and settled while a later snapshot, taken before that, is still to be folded.
To its rules the key looks free, and they request it again. `_emitted` tells the two apart: the key counts as free only when
the snapshot knows of a settlement later than the one known when the effect was emitted.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from pulse_core.actions import ABOUT_RULES
from pulse_core.composition import rules_in_force
from pulse_core.model.kinds import Effect
from pulse_core.model.moment import Moment
from pulse_core.model.tick import NOBODY, LayerOutcome
from pulse_core.model.verdict import NEVER_MS, Verdict, WithheldEffect
from pulse_core.ports.engine import EngineFault, FoldResult
from pulse_core.projections.state import Snapshot
from pulse_core.rules import Rule, compose
from pulse_core.rules.causes import cause_of_effect
from pulse_core.rules.onion import Stopwatch, Trace, rule_name, without_survival_marks

SLOW_US, MOST_SLOW = 1_000_000, 3
"""A rule of a capability that takes so long holds up the daemon, and after so many times in a row it is left out."""

Submit = Callable[[Sequence[Effect]], Awaitable[Collection[str]]]
"""Records effects; returns the keys of those that were recorded, when they are on disk. Raises LogUnavailable if they are
not. It leaves out effects that no executor can carry out, or whose key is being recorded already."""

InnerFold = Callable[[Snapshot, Snapshot], Awaitable[FoldResult]]
"""Folds what is inside the survival rules: plugins' rules and the engine's; reports its own faults."""


@dataclass(frozen=True, slots=True)
class FoldOutcome:
    """The result of a fold: the verdict, the recorded effects, what each layer did, and the faults to report.

    engine: as in a tick's record; withheld: what survival held back in the reflex, and why.
    """

    verdict: Verdict
    emitted: tuple[Effect, ...] = ()
    layers: tuple[LayerOutcome, ...] = ()
    faults: tuple[EngineFault, ...] = ()
    engine: str = NOBODY
    withheld: tuple[WithheldEffect, ...] = ()


class RuleFolds:
    """Folds snapshots. survival: the rules of the reflex, outermost first; inside: what they are folded around.

    rules: those of capabilities, between the two, in the whole fold alone: however many there are, the reflex folds no
    more than survival. `is_recording` holds from when the rules of a whole fold have answered.
    """

    def __init__(
        self,
        survival: Sequence[Rule],
        inside: InnerFold | None,
        submit: Submit,
        rules: Sequence[Rule] = (),
    ) -> None:
        self.survival, self.inside, self.rules = tuple(survival), inside, tuple(rules)
        self.submit = submit
        self.is_recording = False
        self._emitted: dict[str, KeySeen] = {}
        self._names = frozenset(map(rule_name, self.rules))
        self._answered: Snapshot | None = None
        self._again_us = 0
        self._slow = Counter[str]()

    def whole_due_us(self, curr: Snapshot, is_woken: bool) -> int:
        """Microseconds until the whole onion may answer otherwise than at its last fold; is_woken: not by the timer."""
        if not self.inside and not self.rules:
            return NEVER_MS * 1000
        seen = self._answered
        if self.inside or is_woken or seen is None:
            return 0
        if curr.settings is not seen.settings or not curr.state.is_alike(seen.state):
            return 0
        return max(0, self._again_us - curr.now.since(seen.now))

    async def reflex(self, prev: Snapshot, curr: Snapshot) -> FoldOutcome:
        """Fold the survival rules around a rule without effects, and record their effects."""
        trace: Trace = []
        withheld: list[WithheldEffect] = []
        folding = compose(self.survival, trace=trace, clock=stopwatch(), withheld=withheld)
        verdict = await folding(prev, curr)
        wished = [with_cause(effect, curr) for effect in verdict.effects if effect.key not in ABOUT_RULES]
        emitted, faults = await self._submitted(wished, curr), faults_in(trace)
        return FoldOutcome(verdict, emitted, tuple(trace), faults, withheld=tuple(withheld))

    async def whole(self, prev: Snapshot, curr: Snapshot) -> FoldOutcome:
        """Fold the survival rules around the others, and record the others' effects that survival lets pass.

        Survival's own effects are left out, since the reflex of this snapshot has recorded them; except for notices
        about the other rules. Raises what `inside` has raised, once all others have had their say.
        """
        trace: Trace = []
        clock = stopwatch()
        inner: list[LayerOutcome] = []
        failed: list[Exception] = []
        whose, answer = NOBODY, Verdict()

        async def heart(prev: Snapshot, curr: Snapshot) -> Verdict:
            nonlocal whose
            try:
                fold_result = await self.inside(prev, curr) if self.inside else FoldResult()
            except Exception as error:  # noqa: BLE001 - else the layer around it would be taken for the one that failed
                failed.append(error)
                return Verdict()
            await asyncio.sleep(0)  # to decode its answer has taken a while, and to fold it does, too
            whose = fold_result.commit or NOBODY
            inner[:] = fold_result.layers
            return fold_result.verdict

        async def all_but_survival(prev: Snapshot, curr: Snapshot) -> Verdict:
            nonlocal answer
            left_out = self.left_out
            rules = [one for one in rules_in_force(self.rules, curr.state) if rule_name(one) not in left_out]
            verdict = await compose(rules, heart, trace, clock)(prev, curr)
            answer = without_survival_marks(verdict, curr, self._names)
            return answer

        verdict = await compose(self.survival, all_but_survival, trace, clock)(prev, curr)
        passed = [effect for effect in verdict.effects if not effect.survival or effect.key in ABOUT_RULES]
        # An emitted effect that is missing in the snapshot, taken before it was recorded, may be settled by now: it
        # would be done twice.
        self._emitted = {key: seen for key, seen in self._emitted.items() if _seen_of(key, curr) == seen}
        self.is_recording = True
        emitted = await self._submitted([one for one in passed if one.key not in self._emitted], curr, whose)
        self._emitted.update((one.key, _seen_of(one.key, curr)) for one in emitted)
        known = self._emitted.keys() | curr.effects.keys.keys()
        self._answered = curr if all(one.key in known for one in answer.effects) else None
        self._again_us = answer.tick_ms * 1000
        if failed:
            raise failed[0]
        return FoldOutcome(
            verdict, emitted, (*inner, *trace), (*faults_in(trace), *self._slow_in(trace)), whose
        )

    @property
    def left_out(self) -> Mapping[str, str]:
        """The rules of capabilities that are asked no more, for as long as this daemon runs, and why."""
        why = f"it held up the daemon for a second or more, {MOST_SLOW} times in a row"
        return {name: why for name, times in self._slow.items() if times >= MOST_SLOW}

    def _slow_in(self, trace: Trace) -> Iterator[EngineFault]:
        """Faults of the rules of capabilities that held up the daemon in this fold: nobody can break them off."""
        for one in trace:
            if one.rule not in self._names:
                continue
            if one.took_us < SLOW_US:  # as nearly always
                self._slow.pop(one.rule, None)
                continue
            self._slow[one.rule] += 1
            more = "; it is asked no more" if one.rule in self.left_out else ""
            yield EngineFault(f"rule:{one.rule}", f"held up the daemon for {one.took_us / 1e6:.1f} s{more}")

    async def _submitted(
        self, effects: Sequence[Effect], curr: Snapshot, whose: str = NOBODY
    ) -> tuple[Effect, ...]:
        """The effects of which no other one is open, recorded; whose: the commit whose rules were asked."""
        news = tuple(with_commit(one, whose) for one in effects if not curr.effects.excludes(one))
        recorded = await self.submit(news) if news else ()
        return tuple(effect for effect in news if effect.key in recorded)


def with_commit(effect: Effect, commit: str) -> Effect:
    """The effect of a rule of the engine with the commit that has this rule."""
    if commit == NOBODY or effect.survival or effect.capability:
        return effect
    return effect.model_copy(update={"commit": commit})


KeySeen = tuple[str | None, Moment | None]
"""The open effect of a key in a snapshot, and when one was last settled."""


def _seen_of(key: str, curr: Snapshot) -> KeySeen:
    return curr.effects.keys.get(key), curr.effects.settled_at.get(key)


def with_cause(effect: Effect, curr: Snapshot) -> Effect:
    """The effect with the event that it follows from, if its rule names none and there is one."""
    if effect.because or curr.effects.excludes(effect) or not (cause := cause_of_effect(effect, curr)):
        return effect
    return effect.model_copy(update={"because": cause})


def stopwatch() -> Stopwatch:
    """The event loop's clock."""
    return asyncio.get_running_loop().time


def faults_in(trace: Sequence[LayerOutcome]) -> tuple[EngineFault, ...]:
    """The faults of layers that raised."""
    return tuple(EngineFault(f"rule:{one.rule}", one.notes[0]) for one in trace if one.outcome == "error")
