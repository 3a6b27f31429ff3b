"""What happens to agents, and to their runs. A run is one attempt at a task by one program; its id is that of its effect."""

from typing import Annotated

from pydantic import Field

from pulse_core.model.json_types import Json
from pulse_core.model.payload import Payload, Role, Text, Wake

RunId = Annotated[str, Field(max_length=100, description="id of the effect that started it")]


class AgentRunStarted(Payload, kind="agent-run-started", wakes=Wake.NEVER):
    """A program does a task now. Subject: the task's id, as in all of a run."""

    run: RunId
    agent: str
    token: int = Field(description="of the claim under which it works")
    pid: int
    started: int = Field(description="start time of the process, clock ticks after boot")
    workspace: str = Field("", description="where it works")
    unlimited: str = Field("", description="why the limits that the settings want have no effect")


class AgentRunPaused(Payload, kind="agent-run-paused", wakes=Wake.SOON):
    """A run takes far more than usual, and is held for a person to look at it; or goes on, whatever it takes."""

    run: RunId
    why: Text
    over: bool = False


class AgentRunCounted(Payload, kind="agent-run-counted", wakes=Wake.NEVER):
    """How many tokens a run has told of so far: the rate of further ones is taken from here on."""

    run: RunId
    tokens: int


class AgentRunStopRequested(Payload, kind="agent-run-stop-requested", wakes=Wake.NEVER):
    """A run is ended before its time."""

    run: RunId
    why: Text


class AgentRunEnded(Payload, kind="agent-run-ended", wakes=Wake.NOW):
    """The program of a run has ended."""

    run: RunId
    exit: int | None = Field(None, description="its exit code, negative for a signal; none: nobody knows it")
    error: Text = Field("", description="why it failed; empty: it did its task")
    output: int = Field(0, description="bytes that it has printed")
    turns: int = Field(0, description="its messages and steps")
    tokens: int = Field(0, description="those that it has told of as it went")
    usage: dict[str, Json] = Field({}, max_length=50)


class AgentRunPrinted(Payload, kind="agent-run-printed", wakes=Wake.NEVER):
    """The end of what a run has printed. Subject: the run's id. What is large lies in objects/, as of any event."""

    text: str


class AgentRunCleaned(Payload, kind="agent-run-cleaned", wakes=Wake.NEVER):
    """Nothing of a run is left but what it has printed."""

    run: RunId


class WorkspaceMade(Payload, kind="workspace-made", wakes=Wake.NEVER):
    """A task has a git worktree of its project's repository. Subject: the task's id, as in the next two."""

    path: str
    branch: str


class WorkspaceRemoved(Payload, kind="workspace-removed", wakes=Wake.NEVER):
    """The worktree of a task that has ended is gone."""


class WorkspaceKept(Payload, kind="workspace-kept", wakes=Wake.NEVER):
    """The worktree of a task that has ended stays, since there is work in it that is nowhere else."""

    path: str
    why: Text


class AgentPaused(Payload, kind="agent-paused", by=Role.PERSON, wakes=Wake.SOON):
    """A person wants an agent to begin nothing more. Subject: its name."""

    why: Text = ""


class AgentSetAside(Payload, kind="agent-set-aside", wakes=Wake.SOON):
    """An agent begins nothing more until a person has done something, as to log in. Subject: its name."""

    why: Text


class AgentResumed(Payload, kind="agent-resumed", by=Role.PERSON, wakes=Wake.NOW):
    """A person wants an agent to go on, also if it was set aside. Subject: its name."""

    why: Text = ""


KINDS = tuple(kind for kind in Payload.__subclasses__() if kind.__module__ == __name__)
