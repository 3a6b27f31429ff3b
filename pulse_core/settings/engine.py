"""What the engine's own code is allowed, and when its rules are taken back."""

from typing import Annotated

from pydantic import Field

from pulse_core.model.durations import UNITS
from pulse_core.settings.groups import AccountName, Duration, Group, context_check

USER_CHECK = "user_check"
"""In a validation's context: a function that raises ValueError for a user that can't be the engine's."""


class EngineSettings(Group):
    """`[engine]`: the rules of `engine/`, and the process that they run in."""

    enabled: bool = Field(
        True, description="whether its rules are run; without them the survival rules are alone"
    )
    deadline: Duration = Field(
        UNITS["s"] // 4,
        ge=10_000,
        le=60 * UNITS["s"],
        description="how long all its rules may take in a tick",
    )
    memory: int = Field(
        512, ge=64, le=65_536, description="memory that its process may have beyond what it starts with, MiB"
    )
    watch: Duration = Field(
        10 * UNITS["m"], gt=0, description="how long a promote is watched for errors, and then counts as good"
    )
    quarantine: int = Field(
        5, ge=1, le=1_000, description="errors in a row after which a rule is passed over, outside that time"
    )
    user: Annotated[AccountName, context_check(USER_CHECK)] | None = Field(
        None,
        description="user of the machine that its code runs as where the daemon runs as root;"
        " not set: the home's own, `pulse-engine-…`, which the install makes",
        examples=["engine-of-ada"],
    )
    new_effects_per_hour: int = Field(
        120,
        ge=0,
        description="effects in an hour, beyond those of the rules in force, that the gate `replay` lets a promote bring",
    )
    repeat: Duration = Field(
        30 * UNITS["s"], ge=0, description="how long after an effect was settled its key may be wished again"
    )


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
