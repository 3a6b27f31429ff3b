"""The onion: the first rule is outermost, and each may pass on, bypass, decorate or transform."""

from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterator, Sequence
from dataclasses import replace
from typing import Any, cast

from pulse_core.model.kinds import Effect
from pulse_core.model.tick import LayerOutcome
from pulse_core.model.verdict import Verdict, WithheldEffect
from pulse_core.projections.state import Snapshot

Inner = Callable[[Snapshot, Snapshot], Awaitable[Verdict]]
Answer = Verdict | tuple[Sequence[Effect], int]
Rule = Callable[[Snapshot, Snapshot, Inner], Awaitable[Answer]]
Stopwatch = Callable[[], float]
"""Tells seconds; each layer asks it four times."""
Trace = list[LayerOutcome]
MOST_NOTES = 10
"""Dropped effects that are noted."""


async def no_effects(prev: Snapshot, curr: Snapshot) -> Verdict:
    """The innermost rule by default: no effects, no early tick."""
    return Verdict()


def compose(
    rules: Sequence[Rule],
    heart: Inner = no_effects,
    trace: Trace | None = None,
    clock: Stopwatch = int,
    withheld: list[WithheldEffect] | None = None,
) -> Inner:
    """Nest the rules around `heart`, the first one outermost.

    What each layer did is appended to `trace`, innermost first; `clock` returns seconds for it (by
    default it stands still, since a rule may not know the time). The effects that a layer drops are appended to `withheld`.
    """
    inner = heart
    for rule in reversed(rules):
        inner = Layer(
            rule, inner, trace if trace is not None else [], clock, withheld if withheld is not None else []
        )
    return inner


def run_synchronously(answer: Awaitable[Verdict]) -> Verdict | None:
    """Run an onion without a loop, which works if its rules await nothing but `inner`; None if it awaited something else."""
    coroutine = cast(Coroutine[Any, Any, Verdict], answer)
    try:
        coroutine.send(None)
    except StopIteration as done:
        verdict: Verdict = done.value
        return verdict
    coroutine.close()
    return None


def without_survival_marks(verdict: Verdict, curr: Snapshot, capabilities: Collection[str] = ()) -> Verdict:
    """The verdict of rules that are not survival's, its effects without the `survival` mark, with this tick, and with the
    `capability` mark if a rule of one, by these names, requested them."""
    marks = [
        {"survival": False, "capability": one.rule in capabilities, "tick": curr.tick}
        for one in verdict.effects
    ]
    both = tuple(zip(verdict.effects, marks, strict=True))
    if all(getattr(one, name) == value for one, mark in both for name, value in mark.items()):
        return verdict
    return replace(verdict, effects=tuple(one.model_copy(update=mark) for one, mark in both))


def rule_name(rule: Rule) -> str:
    """A rule's name: that of the function."""
    return getattr(rule, "__name__", type(rule).__name__)


class Layer:
    """One rule around its inner one. If it raises, it is skipped: its inner verdict stands."""

    def __init__(
        self, rule: Rule, inner: Inner, trace: Trace, clock: Stopwatch, withheld: list[WithheldEffect]
    ) -> None:
        self.rule, self.inner, self.trace, self.clock, self.withheld = rule, inner, trace, clock, withheld
        self.name = rule_name(rule)

    async def __call__(self, prev: Snapshot, curr: Snapshot) -> Verdict:
        asked = InnerCall(self.inner, prev, curr, self.clock)
        began = self.clock()
        try:
            verdict = await self.rule(prev, curr, asked)
            if verdict is not asked.last:  # else the layer inside has checked it, as nearly always
                verdict = self._signed(as_verdict(verdict), asked.owners, curr)
        except Exception as error:  # noqa: BLE001 - whatever a rule raises must not pass its layer
            stands = await asked.verdict()
            self._trace("error", (f"{type(error).__name__}: {error}",), began, asked)
            return stands
        outcome, notes = layer_outcome(asked, verdict), verdict.notes[len(asked.last.notes) :]
        if outcome == "dropped":
            notes = (*notes, *self._withhold(asked.last.effects, verdict, notes))
        self._trace(outcome, notes, began, asked)
        return verdict

    def _withhold(self, effects: Sequence[Effect], verdict: Verdict, notes: Sequence[str]) -> Iterator[str]:
        """Keep what this rule has dropped, and why; yields a note for each if it notes nothing itself."""
        kept = {effect.key for effect in verdict.effects}
        for place, effect in enumerate(one for one in effects if one.key not in kept):
            about = [note for note in notes if effect.key in note]
            why = "; ".join(about or notes) or "it gives no reason"
            self.withheld.append(WithheldEffect(effect, f"{self.name}: {why}"))
            if not notes and place < MOST_NOTES:
                yield f"{effect.key} is dropped"

    def _signed(self, verdict: Verdict, owners: Collection[str], curr: Snapshot) -> Verdict:
        """The verdict with an owner on each effect: one from inside keeps its own, even if this rule has copied it."""
        owned = [
            one.rule in owners or (one.rule == self.name and one.tick == curr.tick) for one in verdict.effects
        ]
        if all(owned):
            return verdict  # as nearly always
        mine = {"rule": self.name, "tick": curr.tick}
        both = zip(verdict.effects, owned, strict=True)
        return replace(
            verdict, effects=tuple(one if has else one.model_copy(update=mine) for one, has in both)
        )

    def _trace(self, what: str, notes: tuple[str, ...], began: float, asked: "InnerCall") -> None:
        took = self.clock() - began - asked.took
        self.trace.append(LayerOutcome(self.name, what, notes, max(0, round(took * 1e6))))


class InnerCall:
    """A layer's call of its inner rule: keeps the last answer, the effects of all, and its duration."""

    def __init__(self, inner: Inner, prev: Snapshot, curr: Snapshot, clock: Stopwatch) -> None:
        self.inner, self.prev, self.curr, self.clock = inner, prev, curr, clock
        self.last = Verdict()
        self._effects: list[tuple[Effect, ...]] = []
        self.times = 0
        self.took = 0.0
        self.plain: Verdict | None = None

    async def __call__(self, prev: Snapshot, curr: Snapshot) -> Verdict:
        began = self.clock()
        self.times += 1
        self.last = await self.inner(prev, curr)
        if self.last.effects and (not self._effects or self._effects[-1] is not self.last.effects):
            self._effects.append(self.last.effects)
        self.took += self.clock() - began
        if prev is self.prev and curr is self.curr:
            self.plain = self.last
        return self.last

    @property
    def owners(self) -> frozenset[str]:
        """The owners of the effects in all answers."""
        return frozenset(effect.rule for effects in self._effects for effect in effects if effect.rule)

    async def verdict(self) -> Verdict:
        """The inner rule's verdict on the unchanged snapshots, computed at most once."""
        return self.plain if self.plain is not None else await self(self.prev, self.curr)


def as_verdict(answer: Answer) -> Verdict:
    """Convert a rule's answer to a Verdict; a plain pair is allowed. Raises TypeError for anything else."""
    if isinstance(answer, tuple) and len(answer) == 2 and isinstance(answer[0], Sequence):
        answer = Verdict(tuple(answer[0]), answer[1])
    if (
        isinstance(answer, Verdict)
        and isinstance(answer.tick_ms, int)
        and (answer.effects == () or _are_all(Effect, answer.effects))
        and (answer.notes == () or _are_all(str, answer.notes))
    ):
        return answer
    raise TypeError(_fault(answer))


def _are_all(kind: type, values: object) -> bool:
    return isinstance(values, tuple | list) and all(isinstance(one, kind) for one in values)


def _fault(answer: object) -> str:
    """What is wrong with a rule's answer, and what would work."""
    if not isinstance(answer, Verdict):
        hint = ""
        if answer is None:
            hint = " (is there a `return`?)"
        elif isinstance(answer, Coroutine):
            hint = " (is there an `await` before `inner`?)"
        form = "a Verdict or a pair of a list of effects and tick_ms, as in `return await inner(prev, curr)`"
        return f"the rule returned {_spelled(answer)}{hint}; it must return {form}"
    if not isinstance(answer.tick_ms, int):
        return f"tick_ms is {_spelled(answer.tick_ms)}; it must be a whole number of milliseconds, as 1_000"
    kind: type
    whole: object
    name, kind, whole = "notes", str, answer.notes
    if answer.effects != () and not _are_all(Effect, answer.effects):
        name, kind, whole = "effects", Effect, answer.effects
    if isinstance(whole, tuple | list):
        odd = next(one for one in whole if not isinstance(one, kind))
        return f"one of the {name} is {_spelled(odd)}; each must be of the type {kind.__name__}"
    return f"{name} is {_spelled(whole)}; it must be a tuple, as in Verdict({name}=(one,))"


def _spelled(value: object) -> str:
    """A value in words that call no code of its author."""
    plain = value is None or type(value) in (bool, float)
    return str(value) if plain else f"a value of the type {type(value).__name__}"


def layer_outcome(asked: InnerCall, answer: Verdict) -> str:
    """What a layer did with its inner verdict, in one word."""
    if not asked.times:
        return "bypassed"
    if not answer.effects and not asked.last.effects:
        return "passed"
    before, now = {effect.key for effect in asked.last.effects}, {effect.key for effect in answer.effects}
    if before - now:
        return "dropped"
    return "added" if now - before else "passed"
