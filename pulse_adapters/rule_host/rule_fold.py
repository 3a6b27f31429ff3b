"""The onion of the authors' rules, folded in the child."""

from collections.abc import Collection, Mapping
from time import perf_counter_ns
from typing import Any

from pulse_adapters.rule_host.guarded_rule import GuardedRule, Report
from pulse_adapters.rule_host.profiling import Profile
from pulse_adapters.rule_host.replay_fast_path import FastPath
from pulse_adapters.rule_host.time_budget import TimeBudget
from pulse_adapters.workers.source_locations import Places, describe_error, with_place
from pulse_core.model.verdict import Verdict
from pulse_core.projections.state import Snapshot
from pulse_core.rules.onion import Rule, Trace, compose, run_synchronously

MOST_LAYERS = 300
"""A rule may ask its inner one again and again; the last of it is told."""


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
        self._onion = compose(kept, trace=self._trace, clock=_microseconds)
        self.fast_path = FastPath(self._all, names, self._budget)

    def fold(self, prev: Snapshot, curr: Snapshot) -> dict[str, Any]:
        """The rules' verdict, as the parts of a reply. Exceptions of rules end here."""
        self._trace.clear()
        verdict = Verdict()
        try:
            verdict = self._folded(prev, curr)
        except BaseException as error:  # noqa: BLE001 - a rule may have broken the onion itself
            self._report("engine", with_place(describe_error(error), self._places.of_error(error)))
        layers = [(one.rule, one.outcome, one.notes, one.took_us) for one in self._trace[-MOST_LAYERS:]]
        return {
            "effects": verdict.effects,
            "tick_ms": verdict.tick_ms,
            "notes": verdict.notes,
            "layers": layers,
        }

    def _folded(self, prev: Snapshot, curr: Snapshot) -> Verdict:
        if self._profile:
            self._profile.on()
        try:
            verdict = run_synchronously(self._onion(prev, curr))
        finally:
            if self._profile:
                self._profile.off()
        if verdict is None:
            raise TypeError("the onion waits for something")
        return verdict


def _microseconds() -> int:
    return perf_counter_ns() // 1000
