"""Projections are pure folds over the log: same events, same values, every time.

Nothing here reads a clock, a disk or a setting; what a fold must know is in the events.
"""

from pulse_core.projections.control import Control
from pulse_core.projections.effects import Effects, OpenEffect, Phase
from pulse_core.projections.processes import Intent, Processes, ProcessHistory
from pulse_core.projections.projected import BUILT_IN, Projected, fold
from pulse_core.projections.snapshot import Snapshot

__all__ = [
    "BUILT_IN",
    "Control",
    "Effects",
    "Intent",
    "OpenEffect",
    "Phase",
    "ProcessHistory",
    "Processes",
    "Projected",
    "Snapshot",
    "fold",
]
