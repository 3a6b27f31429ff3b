"""Errors of the engine's code on their way to the log: each is counted, few are recorded."""

from dataclasses import dataclass, field

from pulse_core.model.event import Draft
from pulse_core.model.kinds import ErrorReported
from pulse_core.ports.engine import Fault

PAUSE = 1.0
"""Seconds between two records of the same one's errors."""
MOST = 200
"""Different ones that are remembered."""


@dataclass
class _Said:
    at: float
    held: int = 0
    message: str = ""


@dataclass
class Tally:
    """Survival judges a promote by these errors, so that none may be left out of the count for long."""

    said: dict[str, _Said] = field(default_factory=dict)

    def drafts(self, faults: tuple[Fault, ...], now: float) -> list[Draft]:
        """What is to be recorded now; of each at most one a second, with how often it came meanwhile."""
        for fault in faults:
            if fault.whose not in self.said and len(self.said) < MOST:
                self.said[fault.whose] = _Said(now - PAUSE)
            if said := self.said.get(fault.whose):
                said.held, said.message = said.held + 1, fault.message
        return [self._draft(whose, said, now) for whose, said in self.said.items() if _due(said, now)]

    def _draft(self, whose: str, said: _Said, now: float) -> Draft:
        repeats, said.held, said.at = said.held - 1, 0, now
        return Draft(ErrorReported(message=said.message, repeats=repeats), subject=whose)


def _due(said: _Said, now: float) -> bool:
    return said.held > 0 and now - said.at >= PAUSE
