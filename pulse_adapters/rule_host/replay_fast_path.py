"""Folds recorded ticks without full checks: most have no result, and the others are folded again with all checks."""

import sys
from collections.abc import Callable, Collection, Coroutine, Mapping
from typing import Any

from pulse_adapters.rule_host.guarded_rule import MOST_NOTE, MOST_NOTES
from pulse_adapters.rule_host.time_budget import TimeBudget
from pulse_adapters.workers.descriptors import MARK
from pulse_core.model.verdict import NEVER_MS, Verdict
from pulse_core.projections.state import Snapshot
from pulse_core.rules.onion import Inner, Rule, as_verdict

SHARE = 0.1
"""Of the time that a tick has, what this may take of it."""
_LATE = 3
"""Ticks in a row that took longer, after which it is left alone: one may be late because the machine is busy."""
_NOTHING = Verdict()


class FastPath:
    """Tells whether no rule does anything at a tick; in doubt, for any reason, the answer is no.

    All rules share one time budget, and nothing is reported: folding the tick again does that. If the rules take too
    long repeatedly, the fast path is not tried any more.
    """

    def __init__(self, rules: Mapping[str, Rule], skipped: Collection[str], budget: TimeBudget) -> None:
        self.names = tuple(name for name in rules if name not in skipped)
        self._budget, self._late = budget, 0
        self._counts = _Counts(budget)
        inner: Inner = self._counts.innermost
        for unit, (name, rule) in reversed(tuple(enumerate(rules.items()))):
            if name not in skipped:
                inner = _Layer(rule, unit, inner, self._counts)
        self._onion = inner

    def passes(self, prev: Snapshot, curr: Snapshot, seconds: float) -> bool:
        """Whether no rule requested an effect, dropped one or failed; seconds: the time of a tick."""
        if self._late >= _LATE or not self.names:
            return False
        counts = self._counts
        counts.layers = counts.innermost_calls = 0
        counts.is_doubtful = False
        outer, imported = self._budget.enter_together(SHARE * seconds), len(sys.modules)
        ended = _ended(self._onion, prev, curr)
        self._budget.hold()
        is_late = self._budget.is_late
        self._budget.back(outer)
        self._late = self._late + 1 if is_late else 0
        if is_late:
            _forget_after(imported)
        all_passed = counts.layers == len(self.names) and counts.innermost_calls == 1
        return ended and all_passed and not is_late and not counts.is_doubtful


class _Counts:
    """Counts what happens in a tick."""

    def __init__(self, budget: TimeBudget) -> None:
        self.shared, self.exit_if_pipe_is_closed = budget.shared, budget.exit_if_pipe_is_closed
        self.layers = self.innermost_calls = 0
        self.is_doubtful = False

    async def innermost(self, prev: Snapshot, curr: Snapshot) -> Verdict:
        """The innermost rule: requests nothing."""
        self.innermost_calls += 1
        return _NOTHING


class _Layer:
    """One rule as a layer. An exception ends here, and makes the tick doubtful."""

    __slots__ = ("_counts", "_inner", "_mark", "_rule")

    def __init__(self, rule: Rule, unit: int, inner: Inner, counts: _Counts) -> None:
        self._rule, self._inner, self._counts = rule, inner, counts
        self._mark = (unit + 1).to_bytes(MARK, "little")

    async def __call__(self, prev: Snapshot, curr: Snapshot) -> Verdict:
        counts = self._counts
        counts.layers += 1
        outer = counts.shared[:MARK]
        counts.shared[:MARK] = self._mark
        try:
            answer = await self._rule(prev, curr, self._inner)
            if (
                type(answer) is not Verdict
                or answer.effects
                or answer.notes
                or type(answer.tick_ms) is not int
                or not 0 <= answer.tick_ms <= NEVER_MS
            ):
                answer = as_verdict(answer)
                counts.is_doubtful = counts.is_doubtful or not _is_nothing(answer)
            return answer
        except BaseException:  # noqa: BLE001 - somebody else's code, which may raise what it likes
            counts.is_doubtful = True
            return _NOTHING
        finally:
            counts.exit_if_pipe_is_closed()
            counts.shared[:MARK] = outer


def _is_nothing(verdict: Verdict) -> bool:
    """Whether a verdict has no effects and changes nothing."""
    notes = verdict.notes
    is_short = len(notes) <= MOST_NOTES and all(
        type(note) is str and len(note) <= MOST_NOTE for note in notes
    )
    is_plain = type(verdict) is Verdict and type(verdict.tick_ms) is int and 0 <= verdict.tick_ms <= NEVER_MS
    return is_plain and is_short and not verdict.effects


def _forget_after(count: int) -> None:
    """Remove the modules imported last: an import stopped in its middle leaves modules half initialized."""
    for name in list(sys.modules)[count:]:
        del sys.modules[name]


def _ended(onion: Callable[[Snapshot, Snapshot], Any], prev: Snapshot, curr: Snapshot) -> bool:
    """Run the onion's coroutine; whether it ended without waiting."""
    coroutine: Coroutine[Any, Any, Verdict] = onion(prev, curr)
    try:
        coroutine.send(None)
        coroutine.close()  # it waits for something
    except StopIteration:
        return True
    except BaseException:  # noqa: BLE001 - as above
        return False
    return False
