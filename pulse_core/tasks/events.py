"""What happens to tasks, and to the projects that they belong to."""

import re
from typing import Annotated

from pydantic import BaseModel, Field, StringConstraints

from pulse_core.model.durations import UNITS
from pulse_core.model.json_types import Json
from pulse_core.model.payload import Payload, Role, Text, Wake, shape

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
TASK_ID = re.compile(r"task_[a-z0-9]{6,32}")


Name = Annotated[str, shape(NAME, "must be letters, digits, '.', '_' and '-', at most 64, no sign first")]
"""Of a project or an agent."""
TaskId = Annotated[str, shape(TASK_ID, "must be 'task_' and 6 to 32 small letters or digits")]
_LINE = shape(r"[^\x00-\x1f\x7f]+", "must be one line, without newlines, tabs and other control characters")
Line = Annotated[str, StringConstraints(max_length=200), _LINE]
Column = Annotated[str, StringConstraints(max_length=60), _LINE]
_LABEL = r"[A-Za-z0-9][A-Za-z0-9._:/-]{0,63}"
Label = Annotated[str, shape(_LABEL, "must be letters, digits and '._:/-', at most 64, no sign first")]
_REPOSITORY = r"(?:/[^\x00-\x1f\x7f]{1,1000})?"
Repository = Annotated[
    str, shape(_REPOSITORY, "must be an absolute path, at most 1,001 characters of one line")
]
_BRANCH = r"[A-Za-z0-9._/][A-Za-z0-9._/-]{0,199}"
Branch = Annotated[str, shape(_BRANCH, "must be letters, digits and '._/-', at most 200, no '-' first")]

LONGEST_PROMPT = 8_000
LONGEST_RESULT = 4_000
COLUMNS = ("Backlog", "Ready", "In progress", "Review", "Test", "Done")

Token = Annotated[int, Field(ge=1, lt=1 << 63, description="row of the claim that this is said under")]


class ProjectSet(Payload, kind="project-set", by=Role.PERSON, wakes=Wake.SOON):
    """A project was added or changed. Subject: its name."""

    repository: Repository = Field(
        "", description="path of its git repository; none: its tasks need no workspace"
    )
    base: Branch = Field("main", description="branch on which its tasks' branches begin")
    columns: tuple[Column, ...] = Field(COLUMNS, min_length=1, max_length=40)
    members: tuple[Name, ...] = Field(
        (), max_length=1_000, description="agents that may do its tasks; none: all"
    )
    review: bool = Field(False, description="a person closes what was done; else Pulse does")


class ProjectRemoved(Payload, kind="project-removed", by=Role.PERSON, wakes=Wake.SOON):
    """A project is no more. Subject: its name."""


class TaskFields(BaseModel, defer_build=True):
    """What is to be done, as who makes a task says it."""

    project: Name
    title: Line
    prompt: str = Field("", max_length=LONGEST_PROMPT, description="all that whoever does it is told")
    priority: int = Field(0, ge=-100, le=100, description="higher ones are done first")
    column: Column = "Ready"
    labels: tuple[Label, ...] = Field((), max_length=20)
    parent: TaskId | None = Field(None, description="the task that this is a part of")
    blockers: tuple[TaskId, ...] = Field((), max_length=100, description="tasks that must be closed before")
    due: int | None = Field(None, ge=0, lt=1 << 62, description="UTC microseconds")


class TaskCreated(TaskFields, Payload, kind="task-created", by=Role.AGENT, wakes=Wake.NOW):
    """Something is to be done. Subject: the task's id, as in all below."""

    key: str = Field("", max_length=500, description="of the effect that wished for it")


class TaskAssigned(Payload, kind="task-assigned", by=Role.PERSON, wakes=Wake.NOW):
    """An agent is to do it, and nobody else may claim it meanwhile."""

    agent: Name
    why: Text = ""


class TaskExecuting(Payload, kind="task-executing", by=Role.AGENT, wakes=Wake.SOON):
    """An agent has claimed it and works on it. This event's row is the token of the claim."""

    agent: Name
    lease_us: int = Field(gt=0, le=UNITS["d"], description="how long the claim holds without a heartbeat")
    why: Text = ""


class TaskHeartbeat(Payload, kind="task-heartbeat", by=Role.AGENT, wakes=Wake.NEVER):
    """Whoever holds it goes on with it, and the lease begins anew."""

    token: Token


class TaskAcked(Payload, kind="task-acked", by=Role.AGENT, wakes=Wake.NOW):
    """The work is done, and somebody has to accept it."""

    token: Token | None = None
    result: str = Field("", max_length=LONGEST_RESULT)
    data: dict[str, Json] = Field({}, max_length=50, description="usage, cost, commits and the like")


class TaskResultRefused(Payload, kind="task-result-refused", wakes=Wake.NEVER):
    """Somebody whose claim was over came with a result. It changes nothing, and a person can read it here."""

    token: int
    said: str = Field(description="the kind of event that was refused")
    result: str = Field("", max_length=LONGEST_RESULT)


class TaskClosed(Payload, kind="task-closed", by=Role.PERSON, wakes=Wake.NOW):
    """It is accepted, or needs not be done any more."""

    why: Text = ""


class TaskGivenUp(Payload, kind="task-given-up", by=Role.AGENT, wakes=Wake.NOW):
    """Nobody goes on with it, unless a person wants it retried."""

    token: Token | None = None
    why: Text = ""


class TaskReleased(Payload, kind="task-released", by=Role.AGENT, wakes=Wake.NOW):
    """Its holder, or the agent that was to do it, does not any more; somebody else may."""

    token: Token | None = None
    why: Text = ""
    expired: bool = Field(False, description="its lease has ended, which counts as a failure of its holder")


class TaskFailed(Payload, kind="task-failed", by=Role.AGENT, wakes=Wake.NOW):
    """An attempt failed."""

    token: Token
    error: Text
    retry_us: int | None = Field(
        None,
        ge=0,
        le=30 * UNITS["d"],
        description="how long until it may be claimed again; none: a person decides",
    )
    blameless: bool = Field(
        False,
        description="the machine was short of something, or the agent not logged in; it counts neither as attempt nor as"
        " failure",
    )
    unbegun: bool = Field(False, description="its agent had not begun; it is no failure of that one")


class TaskBlocked(Payload, kind="task-blocked", by=Role.AGENT, wakes=Wake.NOW):
    """It can't go on until a person has done something about it."""

    token: Token | None = None
    why: Text


class TaskRetried(Payload, kind="task-retried", by=Role.PERSON, wakes=Wake.NOW):
    """A person wants it done after all; its attempts are counted anew."""

    why: Text = ""


class TaskMoved(Payload, kind="task-moved", by=Role.AGENT, wakes=Wake.NOW):
    """It lies in another column."""

    column: Column
    token: Token | None = None
    why: Text = ""


class TaskBlockersSet(Payload, kind="task-blockers-set", by=Role.PERSON, wakes=Wake.NOW):
    """These tasks must be closed before it is done, and no others."""

    blockers: tuple[TaskId, ...] = Field((), max_length=100)


class TaskPullRequestOpened(Payload, kind="task-pull-request-opened", wakes=Wake.NEVER):
    """What was done lies in a pull request."""

    url: str = Field(max_length=1_000)


KINDS = tuple(kind for kind in Payload.__subclasses__() if kind.__module__ == __name__)
