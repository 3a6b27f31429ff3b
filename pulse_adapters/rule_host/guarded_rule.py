"""Runs one of the authors' rules so that it behaves as the onion expects of a layer."""

from collections.abc import Awaitable, Callable
from types import CoroutineType
from typing import Any

from pydantic_core import to_json

from pulse_adapters.rule_host.time_budget import TimeBudget
from pulse_adapters.workers.framing import WorkerFault
from pulse_adapters.workers.messages import parse
from pulse_adapters.workers.source_locations import Places, describe_error, error_message, with_place
from pulse_core.model.kinds import Effect
from pulse_core.model.verdict import NEVER_MS, Verdict
from pulse_core.projections.state import Snapshot
from pulse_core.rules.onion import Inner, InnerCall, Rule, as_verdict

MOST_EFFECTS = 100
MOST_BYTES = 64 * 1024
"""Of what one rule adds, as JSON: the daemon's loop decodes it."""
MOST_NOTES, MOST_NOTE, MOST_CHARS = 1_000, 2_000, 16_000
"""Notes, characters of one, and of all of a verdict together, more or less; the last one counts what is left out."""
_ASKS = 100

Report = Callable[[str, str], None]


class VerdictTooLarge(Exception):
    """A verdict that exceeds the size limit."""


class RuleEscaped(Exception):
    """A rule that raised an exception meant to end the process, as SystemExit."""


class _LimitedCall:
    """Calls the inner rule, a limited number of times."""

    def __init__(self, inner: InnerCall) -> None:
        self.inner = inner

    def __call__(self, prev: Snapshot, curr: Snapshot) -> Awaitable[Verdict]:
        if self.inner.times >= _ASKS:
            raise VerdictTooLarge(f"inner was asked more than {_ASKS} times")
        return self.inner(prev, curr)


class GuardedRule:
    """Runs a rule within its time; whatever it raises leaves as an Exception, and is reported with its source place."""

    def __init__(
        self, rule: Rule, name: str, unit: int, budget: TimeBudget, places: Places, report: Report
    ) -> None:
        self.__name__ = name
        self._rule, self._unit, self._budget = rule, unit, budget
        self._places, self._report = places, report
        self._defined = places.of_code(rule)

    async def __call__(self, prev: Snapshot, curr: Snapshot, inner: Inner) -> Verdict:
        assert isinstance(inner, InnerCall)
        outer = self._budget.enter(self._unit)
        try:
            answer = _run(self._rule, prev, curr, _LimitedCall(inner))
            return self._checked(as_verdict(answer), inner, curr.tick)
        except BaseException as error:  # noqa: BLE001 - a rule ends nothing but itself
            if self._budget.has_stopped(error):
                if not self._budget.is_fair:
                    raise RuleEscaped("no time was left for it") from None
                raise self._tell(error, "took too long, and was stopped") from None
            if isinstance(error, Exception):
                # An Exception of the same name and message, without code of its author's that could fail later.
                kind: Any = type(type(error).__name__, (Exception,), {})
                alike: Exception = kind(error_message(error)[:MOST_NOTE])
                self._tell(error, describe_error(error))
                raise alike from None
            words = f"raised {describe_error(error)}, which is no Exception and would end more than the rule"
            raise self._tell(error, f"{words}; return a verdict, or raise an Exception") from None
        finally:
            self._budget.back(outer)

    def _checked(self, verdict: Verdict, inner: InnerCall, tick: int) -> Verdict:
        """The verdict rebuilt from plain values. Raises VerdictTooLarge, or what is wrong with an effect."""
        if not verdict.notes and is_plain(verdict):
            return verdict  # as nearly always
        if len(verdict.effects) > MOST_EFFECTS:
            raise VerdictTooLarge(f"{len(verdict.effects):,} effects; a verdict may hold {MOST_EFFECTS:,}")
        if len(verdict.notes) > MOST_NOTES:
            raise VerdictTooLarge(f"{len(verdict.notes):,} notes; a verdict may hold {MOST_NOTES:,}")
        size, effects = 0, []
        known = {effect.key: effect for effect in inner.last.effects}
        for effect in verdict.effects:
            if known.get(effect.key) is not effect:
                owner = effect.rule if effect.rule in inner.owners else self.__name__
                effect, took = _copied(effect, owner, tick)
                size += took
                if size > MOST_BYTES:
                    raise VerdictTooLarge(
                        f"more than {MOST_BYTES:,} bytes of effects; one rule may add no more"
                    )
            effects.append(effect)
        notes = _bounded_notes(verdict.notes)
        return Verdict(tuple(effects), max(0, min(int(verdict.tick_ms), NEVER_MS)), notes)

    def _tell(self, error: BaseException, words: str) -> Exception:
        self._budget.hold()
        self._report(
            f"rule:{self.__name__}", with_place(words, self._places.of_error(error) or self._defined)
        )
        return RuleEscaped(words)


def _bounded_notes(notes: tuple[str, ...]) -> tuple[str, ...]:
    kept: list[str] = []
    left = MOST_CHARS
    for note in notes:
        if left <= 0:
            return (*kept, f"and {len(notes) - len(kept):,} more notes")
        kept.append(note[:MOST_NOTE])
        left -= len(kept[-1])
    return tuple(kept)


def _run(rule: Rule, prev: Snapshot, curr: Snapshot, inner: Inner) -> Any:
    """Run the rule's coroutine without an event loop: there is nothing that it could wait for."""

    asked: Any = rule(prev, curr, inner)
    coroutine = asked if type(asked) is CoroutineType else _awaited(asked)
    try:
        coroutine.send(None)
    except StopIteration as done:
        return done.value
    coroutine.close()
    raise TypeError("a rule may await nothing but inner(prev, curr)")


async def _awaited(asked: Any) -> Any:
    return await asked


def is_plain(verdict: Verdict) -> bool:
    """Whether a verdict has no effects, and can be taken as it is but for its notes."""
    tick_ms = verdict.tick_ms
    return (
        type(verdict) is Verdict and not verdict.effects and type(tick_ms) is int and 0 <= tick_ms <= NEVER_MS
    )


def _copied(effect: Effect, owner: str, tick: int) -> tuple[Effect, int]:
    """The effect rebuilt from plain values, with its owner and tick; and its size in bytes.

    This is the only copy on its way to the log. The daemon validates the values, since it can't trust this process.
    """
    text = to_json(effect)
    if len(text) > MOST_BYTES:
        raise VerdictTooLarge(f"an effect of {len(text):,} bytes; one rule may add {MOST_BYTES:,}")
    try:
        values = parse(text)
    except WorkerFault as error:
        raise TypeError(f"an effect that can't be recorded: {error}") from None
    if not isinstance(values.get("key"), str) or not isinstance(values.get("action"), str):
        raise TypeError("an effect whose action or key is no text")
    values |= {
        "rule": owner,
        "tick": tick,
        "survival": False,
        "capability": False,
        "samples": tuple(values.get("samples") or ()),
    }
    return Effect.model_construct(**values), len(text)
