"""Errors of the engine's code on their way to the log: each is counted, few are recorded."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from pulse_core.model.event import Draft
from pulse_core.model.kinds import ErrorReported
from pulse_core.ports.engine import EngineFault

PAUSE = 1.0
"""Seconds between two records of the same one's errors."""
MAX_REMEMBERED = 200
"""Different ones that are remembered."""
Key = tuple[str, str, bool]


@dataclass
class _ThrottledError:
    at: float
    held: int = 0
    message: str = ""


@dataclass
class ErrorThrottle:
    """Survival judges a promote by these errors, so that none may be left out of the count for long."""

    said: dict[Key, _ThrottledError] = field(default_factory=dict)

    def take(self, faults: Iterable[EngineFault], commit: str, now: float, ended: bool = False) -> None:
        """Count what the code of a commit did wrong; ended: whether its host is no more."""
        for fault in faults:
            key = (fault.whose, commit, ended)
            if key not in self.said and self._has_room(now):
                self.said[key] = _ThrottledError(now - PAUSE)
            if said := self.said.get(key):
                said.held, said.message = said.held + 1, fault.message

    def due(self, now: float) -> list[Draft]:
        """What is to be recorded now; of each at most one a second, with how often it came meanwhile."""
        return [_draft(key, said, now) for key, said in self.said.items() if said.held and _is_due(said, now)]

    def _has_room(self, now: float) -> bool:
        if len(self.said) >= MAX_REMEMBERED:
            self.said = {key: one for key, one in self.said.items() if one.held or not _is_due(one, now)}
        return len(self.said) < MAX_REMEMBERED


def _draft(key: Key, said: _ThrottledError, now: float) -> Draft:
    (whose, commit, ended), repeats = key, said.held - 1
    said.held, said.at = 0, now
    error = ErrorReported(message=said.message, repeats=repeats, commit=commit, ended=ended)
    return Draft(error, subject=whose)


def _is_due(said: _ThrottledError, now: float) -> bool:
    return now - said.at >= PAUSE
