"""Projections are pure folds over the log: same events, same values, every time.

Nothing here reads a clock, a disk or a setting; what a fold must know is in the events.
"""

from pulse_core.projections.conditions import Condition, Conditions, Measure
from pulse_core.projections.control import Control
from pulse_core.projections.effects import Effects, OpenEffect, Phase
from pulse_core.projections.engine import Engine
from pulse_core.projections.fold import CatchUp, Fold, Gap
from pulse_core.projections.logs import Logs
from pulse_core.projections.notices import Notice, Notices
from pulse_core.projections.processes import Intent, Processes, ProcessHistory, Stage
from pulse_core.projections.state import CurrentState, Snapshot, State, StateProjection

__all__ = [
    "CatchUp",
    "Condition",
    "Conditions",
    "Control",
    "CurrentState",
    "Effects",
    "Engine",
    "Fold",
    "Gap",
    "Intent",
    "Logs",
    "Measure",
    "Notice",
    "Notices",
    "OpenEffect",
    "Phase",
    "ProcessHistory",
    "Processes",
    "Snapshot",
    "Stage",
    "State",
    "StateProjection",
]
