"""The actions on tasks: what rules may wish for. Each is nothing but an event, recorded by the daemon."""

from pydantic import Field

from pulse_core.actions import ActionDeclaration, ActionParams
from pulse_core.model.payload import Text
from pulse_core.projections.conditions import Conditions
from pulse_core.tasks.events import TaskFields, TaskId
from pulse_core.tasks.task import Status, TaskState


class CreateParams(TaskFields, ActionParams):
    """What is to be done. While a task of the effect's key is open, no other one is made."""


class CloseParams(ActionParams):
    """Which task was done."""

    task: TaskId
    why: Text = ""


class AssignParams(CloseParams):
    """Which task, and to whom; no agent: nobody gets it for now, whatever the rules outside wish."""

    agent: str = Field("", max_length=64)


class ReleaseParams(CloseParams):
    """Which claim: the task, and the token under which it is held."""

    token: int = Field(ge=1)


CREATE_TASK = ActionDeclaration("create-task", CreateParams, "Makes a task for agents or people.")
ASSIGN_TASK = ActionDeclaration(
    "assign-task", AssignParams, "Gives a task to an agent, and to nobody else.", exclusive_by="task"
)
RELEASE_TASK = ActionDeclaration(
    "release-task", ReleaseParams, "Takes back a claim whose lease has ended.", exclusive_by="task"
)
CLOSE_TASK = ActionDeclaration(
    "close-task", CloseParams, "Closes a task that was done or is needless.", exclusive_by="task"
)

ACTIONS = (CREATE_TASK, ASSIGN_TASK, RELEASE_TASK, CLOSE_TASK)
OF_CONDITION = f"{CREATE_TASK.name}:condition:"
"""The beginning of the keys of tasks that are made of conditions."""


def is_needless(task: TaskState, conditions: Conditions) -> bool:
    """Whether the condition that it was made of is over, and nobody works on it: whoever does may have found the cause."""
    name, of = task.key.removeprefix(OF_CONDITION), conditions
    is_over = name in of.cleared and name not in of.raised and name not in of.unwatched
    return is_over and name != task.key and task.status in (Status.PENDING, Status.ASSIGNED)
