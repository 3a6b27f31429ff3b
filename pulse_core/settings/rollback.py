"""When the engine's rules are taken back by themselves."""

from pydantic import Field

from pulse_core.settings.durations import UNITS, Duration
from pulse_core.settings.groups import Group


class RollbackSettings(Group):
    """`[rollback]`: when a promote is taken back by itself, since it does harm."""

    errors: int = Field(
        10,
        ge=1,
        le=100,
        description="errors of rules and projections while a promote is watched that take it back",
    )
    breakdowns: int = Field(
        5,
        ge=1,
        le=100,
        description="failures of its watchers and executors by their own fault, and ends of its processes, that do so",
    )
    failures: int = Field(
        5, ge=2, le=100, description="failures of survival's own actions in a row that take a promote back"
    )
    within: Duration = Field(10 * UNITS["m"], gt=0, description="time in which those failures must lie")
    patience: Duration = Field(
        2 * UNITS["m"], gt=0, description="how long a rollback may take before a person is told"
    )
