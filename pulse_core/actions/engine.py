"""The action that rolls the engine back."""

from pydantic import BaseModel, ConfigDict, Field

from pulse_core.actions.declaration import ActionDeclaration
from pulse_core.model import actions
from pulse_core.model.kinds import Effect
from pulse_core.projections import Snapshot


class RollbackParams(BaseModel):
    """The commit to go back to, the one that is rejected, and why."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    to: str = Field(min_length=1, description="the commit to go back to")
    reject: str = Field(min_length=1, description="the commit that must be in force, and is rejected")
    why: str = ""


def rollback_refusal(effect: Effect, curr: Snapshot) -> str:
    """Refuse it to every rule of the engine."""
    return "a rule may not take the engine back; wish for a notice, and let a person do it"


ROLLBACK_ENGINE = ActionDeclaration(
    actions.ROLLBACK_ENGINE,
    RollbackParams,
    "Lets the commit before the one in force be in force again; done already if the rejected one is not any more.",
    is_reserved=True,
    refusal=rollback_refusal,
)
