"""Agents in virtual time: a world whose programs end when a story says so, and whose files are in memory."""

import asyncio
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pulse_adapters.memory.programs import MemoryPrograms
from pulse_core.agents.actions import PullRequestParams
from pulse_core.agents.executors import agent_executors
from pulse_core.agents.limits import RunSample
from pulse_core.agents.orphans import OrphansWatcher
from pulse_core.agents.projection import RUNS, AgentRuns, Run
from pulse_core.agents.run_files import Workspace
from pulse_core.agents.run_scope import RunScope
from pulse_core.agents.settings import AgentSettings
from pulse_core.agents.tools import RunAnswer
from pulse_core.agents.watcher import AgentRunsWatcher
from pulse_core.capability import ExecutorContext, WatcherContext
from pulse_core.home import HomeLayout
from pulse_core.model.errors import PulseError
from pulse_core.model.event import Draft, Event
from pulse_core.model.payload import Role, parse
from pulse_core.ports.programs import ProgramSpec
from pulse_core.tasks.executors import executors as task_executors
from pulse_core.tasks.projection import TASKS
from pulse_core.tasks.task import Project, TaskState
from tests.simulation.world import World

ONE, OTHER, THIRD, FOURTH = "task_000001", "task_000002", "task_000003", "task_000004"


@dataclass
class MemoryRunFiles:
    """Implements `pulse_core.agents.run_files.RunFiles`. answers, printed: by run; kept: why a folder stays;
    made: the commits in it; git_takes: seconds until these are found; exits: exit codes that were written down."""

    answers: dict[str, RunAnswer] = field(default_factory=dict)
    printed: dict[str, RunSample] = field(default_factory=dict)
    cleaned: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    refusal: str = ""
    is_full: bool = False
    kept: str = ""
    made: Sequence[str] = ()
    git_takes: float = 0.0
    exits: dict[str, int] = field(default_factory=dict)
    pull_requests: dict[str, str] = field(default_factory=dict)

    async def workspace(self, task: TaskState, project: Project, user: str = "") -> Workspace:
        if self.refusal:
            raise PulseError(self.refusal)
        return Workspace(f"/work/{task.id}", "feat/x" if project.repository else "")

    async def program(
        self, run: str, token: int, task: TaskState, agent: AgentSettings, workspace: Workspace
    ) -> ProgramSpec:
        return ProgramSpec(
            agent.command, workspace.path, {"PULSE_TOKEN": str(token)}, f"/runs/{run}/output.log"
        )

    async def progress(self, run: Run, agent: AgentSettings | None) -> RunSample:
        return self.printed.get(run.id, RunSample())

    async def output(self, run: Run, most: int) -> str:
        said = f"what {run.task} printed"
        return said[len(said) - most :] if most < len(said) else said

    async def answer(self, run: Run, agent: AgentSettings | None) -> RunAnswer:
        return self.answers.get(run.id, RunAnswer())

    async def exit_code(self, run: Run) -> int | None:
        return self.exits.get(run.id)

    async def is_disk_full(self, run: Run) -> bool:
        return self.is_full

    async def commits(self, path: str, project: Project) -> Sequence[str]:
        await asyncio.sleep(self.git_takes)
        return self.made

    async def clean(self, run: Run, most: int, known: Collection[str]) -> None:
        self.cleaned.append(run.id)

    async def open_pull_request(
        self, task: TaskState, project: Project, path: str, said: PullRequestParams
    ) -> str:
        if self.refusal:
            raise PulseError(self.refusal)
        return self.pull_requests.setdefault(task.id, f"https://host/{len(self.pull_requests)}/{task.title}")

    async def remove_workspace(self, path: str, project: Project) -> str:
        if not self.kept:
            self.removed.append(path)
        return self.kept


class AgentScene:
    """A world with agents."""

    def __init__(self, world: World) -> None:
        self.world, self.programs, self.files = world, MemoryPrograms(), MemoryRunFiles()

        async def append(draft: Draft) -> Event:
            assert world.daemon is not None
            return await world.daemon.gate.append_own(draft)

        home = HomeLayout(Path("/home"))
        context = ExecutorContext(lambda: world.settings, self.state, append, self.programs, home)
        made = (*task_executors(context), *agent_executors(context, self.files))
        world.executors |= {one.action: one for one in made}

    def state(self) -> Any:
        assert self.world.daemon is not None
        return self.world.daemon.parts.view()

    async def start(self) -> None:
        """A daemon that watches the runs."""
        world = self.world

        def window(key: str) -> Any:
            assert world.daemon is not None
            return world.daemon.watch.windows[key]

        context = WatcherContext(
            None,  # type: ignore[arg-type]  # it asks no network
            None,  # type: ignore[arg-type]  # and runs no commands
            world.clock,
            lambda: world.settings,
            self.state,
            window,
            self.programs,
            HomeLayout(Path("/home")),
            lambda draft: world.daemon.gate.append_own(draft),  # type: ignore[union-attr]
            lambda listener: None,
        )
        world.watchers = (AgentRunsWatcher(context, self.files), OrphansWatcher(context))
        await world.start()

    async def begin(self, **task: Any) -> None:
        """A daemon, a project and a task."""
        await self.start()
        await self.say("project-set", "app")
        await self.create(**task)

    async def create(self, id_: str = ONE, **task: Any) -> None:
        await self.say("task-created", id_, project="app", title="mend it", **task)

    async def say(
        self,
        kind: str,
        subject: str = ONE,
        role: Role = Role.PERSON,
        scope: RunScope | None = None,
        **data: Any,
    ) -> Event:
        """Record what somebody says, through the front door."""
        assert self.world.daemon is not None
        (recorded,) = await self.world.daemon.gate.append(
            role, "eve", [Draft(parse(kind, data), subject)], scope
        )
        return recorded.event

    def task(self, id_: str = ONE) -> TaskState:
        found = self.state().of(TASKS).find(id_)
        assert found is not None
        return found  # type: ignore[no-any-return]

    @property
    def runs(self) -> AgentRuns:
        found: AgentRuns = self.state().of(RUNS)
        return found

    @property
    def run(self) -> Run:
        """The only live run."""
        (run,) = self.runs.live
        return run

    def finish(self, code: int = 0, answer: RunAnswer | None = None) -> str:
        """End the oldest live program."""
        run = self.runs.live[0]
        if answer is not None:
            self.files.answers[run.id] = answer
        self.programs.end(run.id, code)
        return run.id
