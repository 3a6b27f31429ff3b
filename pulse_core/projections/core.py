"""The core's own projections, in one explicit tuple."""

from typing import Any

from pulse_core.projections import conditions, control, effects, engine, logs, notices, processes
from pulse_core.projections.projection import Projection

EFFECTS = Projection("effects", 3, effects.Effects, effects.KINDS, effects.after)
PROCESSES = Projection("processes", 4, processes.Processes, processes.KINDS, processes.after)
CONTROL = Projection("control", 1, control.Control, control.KINDS, control.after)
CONDITIONS = Projection("conditions", 3, conditions.Conditions, conditions.KINDS, conditions.after)
NOTICES = Projection("notices", 2, notices.Notices, notices.KINDS, notices.after)
LOGS = Projection("logs", 2, logs.Logs, logs.KINDS, logs.after)
ENGINE = Projection("engine", 4, engine.Engine, engine.KINDS, engine.after)

CORE: tuple[Projection[Any], ...] = (
    EFFECTS,
    PROCESSES,
    CONTROL,
    CONDITIONS,
    NOTICES,
    LOGS,
    ENGINE,
)
