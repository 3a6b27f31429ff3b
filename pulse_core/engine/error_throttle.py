"""Throttles errors of the engine's code: each is counted, few are recorded."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from pulse_core.model.event import Draft
from pulse_core.model.kinds import ErrorReported
from pulse_core.ports.engine import EngineFault

PAUSE = 1.0
"""Seconds between two records of errors of the same source."""
MAX_REMEMBERED = 200
"""The most sources that are remembered."""
Key = tuple[str, str, bool]


@dataclass
class _ThrottledError:
    at: float
    held: int = 0
    message: str = ""

    def is_due(self, now: float) -> bool:
        return now - self.at >= PAUSE


@dataclass
class ErrorThrottle:
    """Survival rolls a promote back by these errors, so each must be counted in the log soon."""

    said: dict[Key, _ThrottledError] = field(default_factory=dict)

    def take(self, faults: Iterable[EngineFault], commit: str, now: float, ended: bool = False) -> None:
        """Count faults of a commit's code; ended: whether its host has ended."""
        for fault in faults:
            key = (fault.whose, commit, ended)
            if key not in self.said and self._has_room(now):
                self.said[key] = _ThrottledError(now - PAUSE)
            if said := self.said.get(key):
                said.held, said.message = said.held + 1, fault.message

    def _has_room(self, now: float) -> bool:
        if len(self.said) >= MAX_REMEMBERED:
            self.said = {key: one for key, one in self.said.items() if one.held or not one.is_due(now)}
        return len(self.said) < MAX_REMEMBERED

    def due(self, now: float) -> list[Draft]:
        """The drafts to record now; of each source at most one a second, with the count of repetitions."""
        drafts = []
        for (whose, commit, ended), one in self.said.items():
            if one.held and one.is_due(now):
                error = ErrorReported(message=one.message, repeats=one.held - 1, commit=commit, ended=ended)
                drafts.append(Draft(error, subject=whose))
                one.held, one.at = 0, now
        return drafts
