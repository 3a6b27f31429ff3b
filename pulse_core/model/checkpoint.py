"""Checkpoints of projections, so that the next start need not fold the whole log."""

from typing import NamedTuple

from pulse_core.model.event import Head


class Checkpoint(NamedTuple):
    """A projection's value as JSON text, the version of its fold, and the row of the log it stands at."""

    version: int
    head: Head
    state: str
