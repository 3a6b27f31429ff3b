"""The onion of the authors' rules, folded in the child.

Recorded ticks are folded without full checks first: most have no result, and the others are folded again with all checks.
"""

import sys
from collections.abc import Collection, Mapping
from contextlib import nullcontext
from time import perf_counter
from typing import Any

from pulse_adapters.rule_host.guarded_rule import MOST_NOTES, GuardedRule, Report, is_plain
from pulse_adapters.rule_host.profiling import Profile
from pulse_adapters.rule_host.time_budget import TimeBudget
from pulse_adapters.workers.descriptors import MARK
from pulse_adapters.workers.source_locations import Places, describe_error, with_place
from pulse_core.model.verdict import NEVER_MS, Verdict
from pulse_core.projections.state import Snapshot
from pulse_core.rules.onion import Inner, Rule, Trace, as_verdict, compose, run_synchronously

MOST_LAYERS = 300
"""A rule may ask its inner one again and again; the last of it is told."""
SHARE = 0.1
"""Of the time that a recorded tick has, what the fast path may take of it."""
_LATE = 3
"""Ticks in a row that took longer, after which it is left alone: one may be late because the machine is busy."""
_NOTHING = Verdict()


class RuleFold:
    """Folds snapshots through the rules that are not skipped."""

    def __init__(
        self,
        rules: Mapping[str, Rule],
        budget: TimeBudget,
        places: Places,
        report: Report,
        profile: Profile | None,
    ) -> None:
        self._rules = [
            GuardedRule(rule, name, unit, budget, places, report)
            for unit, (name, rule) in enumerate(rules.items())
        ]
        self._all, self._budget = rules, budget
        self._places, self._report, self._profile = places, report, profile
        self._trace: Trace = []
        self.skip(())

    def skip(self, names: Collection[str]) -> None:
        """Skip these rules from now on, and no others."""
        kept = [rule for rule in self._rules if rule.__name__ not in names]
        self._onion = compose(kept, trace=self._trace, clock=perf_counter)
        self.fast_path = FastPath(self._all, names, self._budget)

    def fold(self, prev: Snapshot, curr: Snapshot) -> dict[str, Any]:
        """The rules' verdict, as the parts of a reply. Exceptions of rules end here."""
        self._trace.clear()
        verdict = Verdict()
        try:
            with self._profile or nullcontext():
                answer = run_synchronously(self._onion(prev, curr))
            if answer is None:
                raise TypeError("the onion waits for something")
            verdict = answer
        except BaseException as error:  # noqa: BLE001 - a rule may have broken the onion itself
            self._report("engine", with_place(describe_error(error), self._places.of_error(error)))
        layers = [(one.rule, one.outcome, one.notes, one.took_us) for one in self._trace[-MOST_LAYERS:]]
        return {
            "effects": verdict.effects,
            "tick_ms": verdict.tick_ms,
            "notes": verdict.notes,
            "layers": layers,
        }


class FastPath:
    """Tells whether no rule does anything at a tick; in doubt, for any reason, the answer is no.

    All rules share one time budget, and nothing is reported: folding the tick again does that. If the rules take too
    long repeatedly, the fast path is not tried any more. layers, innermost_calls: of the tick.
    """

    def __init__(self, rules: Mapping[str, Rule], skipped: Collection[str], budget: TimeBudget) -> None:
        self.names = tuple(name for name in rules if name not in skipped)
        self._budget, self._late = budget, 0
        self.shared, self.exit_if_pipe_is_closed = budget.shared, budget.exit_if_pipe_is_closed
        self.layers = self.innermost_calls = 0
        self.is_doubtful = False
        inner: Inner = self._innermost
        for unit, (name, rule) in reversed(tuple(enumerate(rules.items()))):
            if name not in skipped:
                inner = _Layer(rule, unit, inner, self)
        self._onion = inner

    async def _innermost(self, prev: Snapshot, curr: Snapshot) -> Verdict:
        self.innermost_calls += 1
        return _NOTHING

    def passes(self, prev: Snapshot, curr: Snapshot, seconds: float) -> bool:
        """Whether no rule requested an effect, dropped one or failed; seconds: the time of a tick."""
        if self._late >= _LATE or not self.names:
            return False
        self.layers = self.innermost_calls = 0
        self.is_doubtful = False
        outer, imported = self._budget.enter_together(SHARE * seconds), len(sys.modules)
        try:
            has_ended = run_synchronously(self._onion(prev, curr)) is not None
        except BaseException:  # noqa: BLE001 - somebody else's code, which may raise what it likes
            has_ended = False
        self._budget.hold()
        is_late = self._budget.is_late
        self._budget.back(outer)
        self._late = self._late + 1 if is_late else 0
        if is_late:
            for name in list(sys.modules)[
                imported:
            ]:  # one that was stopped in its middle is half initialized
                del sys.modules[name]
        all_passed = self.layers == len(self.names) and self.innermost_calls == 1
        return has_ended and all_passed and not is_late and not self.is_doubtful


class _Layer:
    """One rule as a layer of the fast path. An exception ends here, and makes the tick doubtful."""

    __slots__ = ("_inner", "_mark", "_path", "_rule")

    def __init__(self, rule: Rule, unit: int, inner: Inner, path: FastPath) -> None:
        self._rule, self._inner, self._path = rule, inner, path
        self._mark = (unit + 1).to_bytes(MARK, "little")

    async def __call__(self, prev: Snapshot, curr: Snapshot) -> Verdict:
        path = self._path
        shared = path.shared
        path.layers += 1
        outer = shared[:MARK]
        shared[:MARK] = self._mark
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
                if not is_plain(answer) or len(answer.notes) > MOST_NOTES:
                    path.is_doubtful = True
            return answer
        except BaseException:  # noqa: BLE001 - as above
            path.is_doubtful = True
            return _NOTHING
        finally:
            path.exit_if_pipe_is_closed()
            shared[:MARK] = outer
