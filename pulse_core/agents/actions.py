"""The actions of agents: what rules wish for."""

from pydantic import Field

from pulse_core.actions import ActionDeclaration, ActionParams
from pulse_core.model.payload import Text
from pulse_core.tasks.events import Name, TaskId


class WorkspaceParams(ActionParams):
    """Whose worktree."""

    task: TaskId


class RunParams(WorkspaceParams):
    """Which task, and which agent does it."""

    agent: Name


class CleanRunParams(ActionParams):
    """Which run has ended."""

    run: str = Field(max_length=100)


class StopRunParams(CleanRunParams):
    """Which run, and why."""

    why: Text


class PauseRunParams(StopRunParams):
    """Which run, and why. over: it goes on, whatever it takes."""

    over: bool = False


class EndOrphanParams(CleanRunParams):
    """Which process, of which run that is over. dry_run: only say what would be ended."""

    pid: int = Field(gt=1)
    started: int
    dry_run: bool = True


class PullRequestParams(WorkspaceParams):
    """Whose branch, and what is said of it; by default the task's title and its result."""

    title: str = Field("", max_length=200)
    body: str = Field("", max_length=20_000)
    draft: bool = False


RUN_AGENT = ActionDeclaration(
    "run-agent", RunParams, "Claims a task for an agent and starts its program.", exclusive_by="task"
)
STOP_RUN = ActionDeclaration(
    "stop-agent-run", StopRunParams, "Ends a program with all that came out of it.", exclusive_by="run"
)
PAUSE_RUN = ActionDeclaration(
    "pause-agent-run", PauseRunParams, "Holds an agent's program, or has it go on.", exclusive_by="run"
)
CLEAN_RUN = ActionDeclaration(
    "clean-agent-run", CleanRunParams, "Ends what a run has left behind.", exclusive_by="run"
)
MAKE_WORKSPACE = ActionDeclaration(
    "make-workspace", WorkspaceParams, "Makes the worktree of a claimed task.", exclusive_by="task"
)
REMOVE_WORKSPACE = ActionDeclaration(
    "remove-workspace",
    WorkspaceParams,
    "Removes the worktree of a task that has ended, if all that was done in it is pushed.",
    exclusive_by="task",
)
END_ORPHAN = ActionDeclaration(
    "end-agent-orphan", EndOrphanParams, "Ends what an agent has left behind.", exclusive_by="pid"
)
OPEN_PULL_REQUEST = ActionDeclaration(
    "open-pull-request", PullRequestParams, "Opens a task's pull request, or finds it.", exclusive_by="task"
)

ACTIONS = (
    RUN_AGENT, PAUSE_RUN, STOP_RUN, CLEAN_RUN, MAKE_WORKSPACE, REMOVE_WORKSPACE, OPEN_PULL_REQUEST, END_ORPHAN,
)  # fmt: skip
