"""Where runs work, what they are told, and what they leave on the disk."""

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

from pulse_core.agents.actions import PullRequestParams
from pulse_core.agents.limits import RunSample
from pulse_core.agents.projection import Run
from pulse_core.agents.settings import AgentSettings
from pulse_core.agents.tools import RunAnswer
from pulse_core.ports.programs import ProgramSpec
from pulse_core.tasks.task import Project, TaskState


class RunFolder(NamedTuple):
    """The files of one run in a home: what it is told, what it shows to be answered over the socket, its exit status where
    its output does not say whether it did its task, how much it had printed before that was cut, and what it prints."""

    path: Path
    prompt: Path
    token: Path
    status: Path
    size: Path
    output: Path

    @classmethod
    def of(cls, home: Path, run: str) -> "RunFolder":
        """The folder of this run."""
        path = home / "runs" / run
        return cls(path, *(path / name for name in ("prompt.md", "token", "exit", "size", "output.log")))


class Workspace(NamedTuple):
    """The folder of a task. branch: of a worktree; empty for a plain folder."""

    path: str
    branch: str = ""


class RunFiles(Protocol):
    """Makes and reads files of runs. Whatever fails raises PulseError with what a person can do about it."""

    async def workspace(self, task: TaskState, project: Project, user: str = "") -> Workspace:
        """The task's folder, the same one each time: a worktree on its own branch, if the project has a repository.

        user: whose it is, if not the daemon's own.
        """

    async def program(
        self, run: str, token: int, task: TaskState, agent: AgentSettings, workspace: Workspace
    ) -> ProgramSpec:
        """What to start, with everything that it is told on the disk."""

    async def progress(self, run: Run, agent: AgentSettings | None) -> RunSample:
        """How far it is as its files tell, nothing if they can't be seen; raises nothing."""

    async def output(self, run: Run, most: int) -> str:
        """The end of what it has printed, at most so many bytes."""

    async def answer(self, run: Run, agent: AgentSettings | None) -> RunAnswer:
        """What its output says, once it has ended."""

    async def exit_code(self, run: Run) -> int | None:
        """Its exit code as it was written down, negative for a signal; None if it was not."""

    async def is_disk_full(self, run: Run) -> bool:
        """Whether there is no room where it works, or where its output goes."""

    async def commits(self, path: str, project: Project) -> Sequence[str]:
        """The commits in a task's folder that the project's base branch does not have, the newest first."""

    async def clean(self, run: Run, most: int, known: Collection[str]) -> None:
        """Remove what it was told, the middle of what it has printed beyond `most` bytes, and old runs that aren't known."""

    async def open_pull_request(
        self, task: TaskState, project: Project, path: str, said: PullRequestParams
    ) -> str:
        """Where the pull request of a task's branch is: the one that there is, or a new one. path: its folder, if known."""

    async def remove_workspace(self, path: str, project: Project) -> str:
        """Remove a task's folder, if nothing is in it that is nowhere else; else why it is kept."""
