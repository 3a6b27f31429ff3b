"""What is held back on somebody's behalf, whoever brought that about."""

from collections.abc import Callable, Iterable
from fnmatch import fnmatchcase
from typing import NamedTuple

from pulse_core.projections import Snapshot


class Hold(NamedTuple):
    """Effects that are held back now: a pattern of their keys, for how many microseconds more, and by whom in words."""

    match: str
    left_us: int
    whose: str


Holds = Callable[[Snapshot], Iterable[Hold]]
"""Returns what is held back at this moment."""


def longest_hold(key: str, holds: Iterable[Hold]) -> Hold | None:
    """The one that holds back effects of this key for longest, or None."""
    fitting = (one for one in holds if fnmatchcase(key, one.match))
    return max(fitting, key=lambda one: one.left_us, default=None)
