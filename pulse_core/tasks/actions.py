"""The actions on tasks: what rules may wish for. Each is nothing but an event, recorded by the daemon."""

from pydantic import Field

from pulse_core.actions import ActionDeclaration, ActionParams
from pulse_core.model.payload import Text
from pulse_core.tasks.events import LONGEST_PROMPT, Column, Label, Line, Name, TaskId


class CreateParams(ActionParams):
    """What is to be done. While a task of the effect's key is open, no other one is made."""

    project: Name
    title: Line
    prompt: str = Field("", max_length=LONGEST_PROMPT, description="all that whoever does it is told")
    priority: int = Field(0, ge=-100, le=100)
    column: Column = "Ready"
    labels: tuple[Label, ...] = Field((), max_length=20)
    parent: TaskId | None = None
    blockers: tuple[TaskId, ...] = Field((), max_length=100)
    due: int | None = Field(None, ge=0, description="UTC microseconds")


class AssignParams(ActionParams):
    """Which task, and to whom; no agent: nobody gets it for now, whatever the rules outside wish."""

    task: TaskId
    agent: str = Field("", max_length=64)
    why: Text = ""


class ReleaseParams(ActionParams):
    """Which claim: the task, and the token under which it is held."""

    task: TaskId
    token: int = Field(ge=1)
    why: Text = ""


class CloseParams(ActionParams):
    """Which task was done."""

    task: TaskId
    why: Text = ""


CREATE_TASK = ActionDeclaration("create-task", CreateParams, "Makes a task for agents or people.")
ASSIGN_TASK = ActionDeclaration(
    "assign-task", AssignParams, "Gives a task to an agent, and to nobody else.", exclusive_by="task"
)
RELEASE_TASK = ActionDeclaration(
    "release-task", ReleaseParams, "Takes back a claim whose lease has ended.", exclusive_by="task"
)
CLOSE_TASK = ActionDeclaration("close-task", CloseParams, "Closes a task that was done.", exclusive_by="task")

ACTIONS = (CREATE_TASK, ASSIGN_TASK, RELEASE_TASK, CLOSE_TASK)
