"""What the engine's own code is allowed."""

from typing import Annotated

from pydantic import AfterValidator, Field, ValidationInfo

from pulse_core.settings.durations import UNITS, Duration
from pulse_core.settings.groups import Group

USER_CHECK = "user_check"
"""In a validation's context: a function that raises ValueError for a user that can't be the engine's."""


def _user(name: str, info: ValidationInfo) -> str:
    if check := (info.context or {}).get(USER_CHECK):
        check(name)
    return name


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
    user: Annotated[str, AfterValidator(_user)] | None = Field(
        None,
        description="user of the machine that its code runs as where the daemon runs as root;"
        " not set: `pulse-engine`, if there is one",
        examples=["pulse-engine"],
    )
    repeat: Duration = Field(
        30 * UNITS["s"], ge=0, description="how long after an effect was settled its key may be wished again"
    )
