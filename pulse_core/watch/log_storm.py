"""Detects log storms: more matching lines than are recorded. Pure: same minute, same condition, same conclusion."""

from collections import deque
from typing import NamedTuple

from pulse_core.model.event import Draft
from pulse_core.model.kinds import ConditionCleared, ConditionRaised
from pulse_core.model.moment import US_PER_SECOND
from pulse_core.model.text import are, count
from pulse_core.projections.conditions import Condition

PREFIX = "log:"
"""What the names of these conditions begin with; the source follows."""
STORM = "storm"
MINUTE = 60 * US_PER_SECOND
WORSE_FACTOR = 10
"""The factor over the last recorded count at which the storm is recorded again."""
CALM_SHARE = 0.5
"""The share of the limit under which a storm is over."""


class LineCounts(NamedTuple):
    """The last minute of one source: lines that matched, those of them that were only counted, and the limit a minute.

    watched: microseconds since counting began, a minute at most.
    """

    lines: int
    untold: int
    limit: int
    watched: int


def conclude(source: str, minute: LineCounts, standing: Condition | None) -> tuple[Draft, ...]:
    """Conclude what follows: a storm begins with the first line that is only counted, and ends in a calm minute."""
    name = PREFIX + source
    if minute.untold and (standing is None or minute.lines >= WORSE_FACTOR * (standing.value or 0)):
        words = f"{minute.lines} lines within a minute, of which {minute.untold} {are(minute.untold)} only counted"
        raised = ConditionRaised(
            evidence=words, state=STORM, value=float(minute.lines), bound=float(minute.limit)
        )
        return (Draft(raised, subject=name),)
    calm = not minute.untold and minute.lines <= minute.limit * CALM_SHARE and minute.watched >= MINUTE
    if standing is not None and calm:
        words = f"{count(minute.lines, 'line')} within a minute"
        return (Draft(ConditionCleared(evidence=words, value=float(minute.lines)), subject=name),)
    return ()


class LineCounter:
    """Counts the lines of one source over the last minute; moments are microseconds that never go back."""

    def __init__(self) -> None:
        self.limit = 0
        self._counted: deque[tuple[int, int, int]] = deque()

    def add(self, lines: int, untold: int, limit: int, now: int) -> None:
        """Add lines, of which `untold` are only counted; limit: how many a minute are recorded."""
        self._counted.append((now, lines, untold))
        self.limit = limit

    def lasts(self, now: int) -> bool:
        """Whether a line was added within the last minute."""
        return bool(self._counted) and now - self._counted[-1][0] < MINUTE

    def minute(self, since: int, now: int) -> LineCounts:
        """The minute until now, where counting began at `since`."""
        while self._counted and now - self._counted[0][0] >= MINUTE:
            self._counted.popleft()
        lines, untold = (sum(one[place] for one in self._counted) for place in (1, 2))
        return LineCounts(lines, untold, self.limit, min(now - since, MINUTE))
