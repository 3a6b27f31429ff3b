"""Decides which rules of the engine fail or are slow so often that they are skipped."""

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from pulse_core.model.tick import LayerOutcome
from pulse_core.ports.engine import EngineFault

RULE = "rule:"
SLOW = 0.5
"""The part of the deadline that a rule must not take tick after tick."""
SLOW_TICKS = 10


@dataclass
class Quarantine:
    """Counts consecutive errors and slow ticks of each rule of one host. One good tick resets the count."""

    errors: Counter[str] = field(default_factory=Counter)
    slow: Counter[str] = field(default_factory=Counter)

    def observe(
        self, layers: Iterable[LayerOutcome], faults: Iterable[EngineFault], deadline_us: int
    ) -> None:
        """Count the outcome of one tick."""
        erred = {fault.whose.removeprefix(RULE) for fault in faults if fault.whose.startswith(RULE)}
        took = {layer.rule: layer.took_us for layer in layers}
        slow = {rule for rule, us in took.items() if us > SLOW * deadline_us}
        self.errors = _counted(self.errors, erred)
        self.slow = _counted(self.slow, slow)

    def verdicts(self, errors: int, of: Collection[str] | None = None) -> dict[str, str]:
        """The rules to skip and why; errors: how many in a row are too many; of: only these rules, None for all."""
        found = {
            rule: f"it took more than {SLOW:.0%} of the deadline in {times} ticks in a row"
            for rule, times in self.slow.items()
            if times >= SLOW_TICKS
        }
        for rule, times in self.errors.items():
            if times >= errors and (of is None or RULE + rule in of):
                found[rule] = f"it failed in {times} ticks in a row"
        return found


def _counted(before: Counter[str], now: set[str]) -> Counter[str]:
    return Counter({rule: before[rule] + 1 for rule in now})
