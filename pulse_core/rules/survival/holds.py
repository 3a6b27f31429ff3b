"""Holds: effects that are held back at a person's request."""

from collections.abc import Callable, Iterable
from typing import NamedTuple

from pulse_core.model.glob import glob_matches
from pulse_core.projections.state import Snapshot


class Hold(NamedTuple):
    """A pattern of the keys of held-back effects, for how many microseconds more, and on whose behalf, in words."""

    match: str
    left_us: int
    whose: str


Holds = Callable[[Snapshot], Iterable[Hold]]
"""Returns what is held back at this moment."""


def longest_hold(key: str, holds: Iterable[Hold]) -> Hold | None:
    """The hold on effects of this key that lasts longest, or None."""
    fitting = (one for one in holds if glob_matches(one.match, key))
    return max(fitting, key=lambda one: one.left_us, default=None)
