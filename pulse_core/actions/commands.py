"""Actions that run programs."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from pulse_core.actions.declaration import ActionDeclaration
from pulse_core.model import actions

Word = Annotated[str, StringConstraints(pattern=r"^[^\x00]*$")]


class CommandParams(BaseModel):
    """What to run; `idempotent` says that running it twice does no harm, and is believed."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    argv: tuple[Word, ...] = Field(min_length=1, description="program and arguments")
    idempotent: bool = Field(False, description="may be run again after a failure or a crash")
    cwd: str | None = Field(None, pattern=r"^/[^\x00]*$", description="working directory, an absolute path")
    timeout_s: float | None = Field(None, gt=0, le=86_400, description="seconds; the setting's if not given")


class CollectParams(BaseModel):
    """What for; it stands in the bundle."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    why: str = Field("", max_length=2_000, description="what the bundle is for")
    for_condition: str = Field("", description="the condition that it answers")


RUN_COMMAND = ActionDeclaration(
    actions.RUN_COMMAND,
    CommandParams,
    "Runs a program if its real path is one of the allowed; a whole process tree ends with its timeout.",
)
COLLECT = ActionDeclaration(
    actions.COLLECT,
    CollectParams,
    "Writes a bundle of what is known at this moment, for whoever looks into it later.",
    is_reserved=True,
)
