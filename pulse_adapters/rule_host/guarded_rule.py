"""One of the authors' rules, held to what the onion expects of a layer."""

from collections.abc import Callable
from types import CoroutineType
from typing import Any

from pydantic_core import to_json

from pulse_adapters.rule_host.time_budget import TimeBudget, TimeBudgetExceeded
from pulse_adapters.workers.source_locations import Places, placed, spelled, text_of
from pulse_core.model.kinds import Effect
from pulse_core.model.verdict import NEVER_MS, Verdict
from pulse_core.projections import Snapshot
from pulse_core.rules.onion import Inner, Rule, as_verdict

MOST_EFFECTS = 1_000
MOST_BYTES = 512 * 1024
"""Of what one rule adds, as JSON."""
MOST_NOTES, MOST_NOTE = 1_000, 2_000
_ASKS = 100

Report = Callable[[str, str], None]


class VerdictTooLarge(Exception):
    """A verdict that is more than anybody would carry."""


class RuleEscaped(Exception):
    """A rule that tried to end more than itself."""


class GuardedRule:
    """Runs a rule in its time and alone; whatever it raises leaves as an Exception, and is reported with its place."""

    def __init__(
        self, rule: Rule, name: str, unit: int, guard: TimeBudget, places: Places, report: Report
    ) -> None:
        self.__name__ = name
        self._rule, self._unit, self._guard = rule, unit, guard
        self._places, self._report = places, report
        self._defined = places.of_code(rule)

    async def __call__(self, prev: Snapshot, curr: Snapshot, inner: Inner) -> Verdict:
        heard = _InnerResult(inner)
        outer = self._guard.enter(self._unit)
        try:
            answer = _driven(self._rule, prev, curr, heard)
            return _checked(as_verdict(answer), heard.known)
        except Exception as error:  # noqa: BLE001 - it is raised again, as something tame
            words, alike = spelled(error), _alike(error)
            self._tell(error, words)
            raise alike from None
        except TimeBudgetExceeded as error:
            if not self._guard.is_fair:
                raise RuleEscaped("no time was left for it") from None
            raise self._tell(error, "took too long, and was stopped") from None
        except BaseException as error:  # noqa: BLE001 - likewise: a rule ends nothing but itself
            raise self._tell(error, f"raised {spelled(error)}") from None
        finally:
            self._guard.back(outer)

    def _tell(self, error: BaseException, words: str) -> Exception:
        self._guard.hold()
        self._report(f"rule:{self.__name__}", placed(words, self._places.of_error(error) or self._defined))
        return RuleEscaped(words)


def _alike(error: Exception) -> Exception:
    """An error of this name that says the same, and has no code of its own that could go wrong later."""
    return type(type(error).__name__, (Exception,), {})(text_of(error)[:MOST_NOTE])  # type: ignore[no-any-return]


class _InnerResult:
    """The inner rule, and which effects it answered."""

    def __init__(self, inner: Inner) -> None:
        self.inner = inner
        self.known: dict[int, Effect] = {}
        self._times = 0

    async def __call__(self, prev: Snapshot, curr: Snapshot) -> Verdict:
        self._times += 1
        if self._times > _ASKS:
            raise VerdictTooLarge(f"inner was asked more than {_ASKS} times")
        verdict = await self.inner(prev, curr)
        if verdict.effects:
            self.known.update((id(effect), effect) for effect in verdict.effects)
        return verdict


def _driven(rule: Rule, prev: Snapshot, curr: Snapshot, inner: Inner) -> Any:
    """What the rule answers; it is driven by hand, since there is nothing here that it could wait for."""

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


def _checked(verdict: Verdict, known: dict[int, Effect]) -> Verdict:
    """The verdict made of nothing but plain values. Raises Excess, or what is wrong with an effect."""
    if type(verdict) is Verdict and not verdict.effects and not verdict.notes and _is_plain(verdict.tick_ms):
        return verdict  # as nearly always
    if len(verdict.effects) > MOST_EFFECTS:
        raise VerdictTooLarge(f"{len(verdict.effects):,} effects; a verdict may hold {MOST_EFFECTS:,}")
    if len(verdict.notes) > MOST_NOTES:
        raise VerdictTooLarge(f"{len(verdict.notes):,} notes; a verdict may hold {MOST_NOTES:,}")
    size, effects = 0, []
    for effect in verdict.effects:
        if id(effect) not in known:
            effect, took = _plain(effect)
            size += took
            if size > MOST_BYTES:
                raise VerdictTooLarge(f"more than {MOST_BYTES:,} bytes of effects; one rule may add no more")
        effects.append(effect)
    notes = tuple(note[:MOST_NOTE] for note in verdict.notes)
    return Verdict(tuple(effects), max(0, min(int(verdict.tick_ms), NEVER_MS)), notes)


def _is_plain(tick_ms: int) -> bool:
    return type(tick_ms) is int and 0 <= tick_ms <= NEVER_MS


def _plain(effect: Effect) -> tuple[Effect, int]:
    """The effect as it arrives on the other side, and its bytes."""
    text = to_json(effect)
    if len(text) > MOST_BYTES:
        raise VerdictTooLarge(f"an effect of {len(text):,} bytes; one rule may add {MOST_BYTES:,}")
    return Effect.model_validate_json(text), len(text)
