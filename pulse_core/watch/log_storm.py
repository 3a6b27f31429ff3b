"""When a log is a storm: more lines than are told. Pure: same minute, same condition, same conclusion."""

from collections import deque
from typing import NamedTuple

from pulse_core.model.event import Draft
from pulse_core.model.kinds import ConditionCleared, ConditionRaised
from pulse_core.model.moment import US_PER_SECOND
from pulse_core.projections import Condition

PREFIX = "log:"
"""What the names of these conditions begin with; the source follows."""
STORM = "storm"
MINUTE = 60 * US_PER_SECOND
WORSE_FACTOR = 10
"""How many times as many lines as were last told are news."""
CALM_SHARE = 0.5
"""The share of the limit under which a storm is over."""


class LineCounts(NamedTuple):
    """The last minute of one source: lines that matched, those of them that nobody was told, and lines that may be.

    watched: microseconds since somebody counts, a minute at most.
    """

    lines: int
    untold: int
    limit: int
    watched: int


def conclude(source: str, minute: LineCounts, standing: Condition | None) -> tuple[Draft, ...]:
    """What follows: a storm begins with the first line that is only counted, and ends in a calm minute."""
    name = PREFIX + source
    if minute.untold and (standing is None or minute.lines >= WORSE_FACTOR * (standing.value or 0)):
        words = f"{minute.lines} lines within a minute, of which {minute.untold} are only counted"
        raised = ConditionRaised(
            evidence=words, state=STORM, value=float(minute.lines), bound=float(minute.limit)
        )
        return (Draft(raised, subject=name),)
    calm = not minute.untold and minute.lines <= minute.limit * CALM_SHARE and minute.watched >= MINUTE
    if standing is not None and calm:
        words = f"{minute.lines} lines within a minute"
        return (Draft(ConditionCleared(evidence=words, value=float(minute.lines)), subject=name),)
    return ()


class LineCounter:
    """Counts the lines of one source over the last minute; moments are microseconds that never go back."""

    def __init__(self) -> None:
        self.limit = 0
        self._counted: deque[tuple[int, int, int]] = deque()

    def add(self, lines: int, untold: int, limit: int, now: int) -> None:
        """So many lines, of which so many are only counted; limit: how many a minute may be told."""
        self._counted.append((now, lines, untold))
        self.limit = limit

    def minute(self, since: int, now: int) -> LineCounts:
        """The minute until now, of somebody who has counted since then."""
        while self._counted and now - self._counted[0][0] >= MINUTE:
            self._counted.popleft()
        lines, untold = (sum(one[place] for one in self._counted) for place in (1, 2))
        return LineCounts(lines, untold, self.limit, min(now - since, MINUTE))
