"""Executors of agents: a run is begun once for each claim, ended with all that came out of it, and cleaned up after."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from pulse_core.agents import actions, events
from pulse_core.agents.failures import FailureKind, failed_attempt
from pulse_core.agents.projection import RUNS, AgentRuns, Run
from pulse_core.agents.run_files import RunFiles, Workspace
from pulse_core.agents.settings import GENERAL, AgentSettings, agents_of, known_agent
from pulse_core.capability import ExecutorContext
from pulse_core.model.errors import PulseError
from pulse_core.model.event import Draft, Event
from pulse_core.model.kinds import Effect
from pulse_core.model.moment import US_PER_SECOND
from pulse_core.model.payload import Payload
from pulse_core.model.shortages import tells_of_shortage
from pulse_core.ports.executor import Executor, GivenUp, Policy, Result, Safety
from pulse_core.ports.host import ProcessId
from pulse_core.tasks.events import TaskExecuting, TaskPullRequestOpened
from pulse_core.tasks.executors import RecordingExecutor
from pulse_core.tasks.task import ENDED, Project, Status, TaskState

SOFT_S = 10.0


@dataclass(frozen=True)
class _OfAgents(RecordingExecutor):
    """Base: what all of them read and may do."""

    files: RunFiles

    def policy(self, params: Any) -> Policy:
        return Policy(Safety.IDEMPOTENT, timeout=120.0)

    @property
    def runs(self) -> AgentRuns:
        return self.context.state().of(RUNS)

    def agent(self, name: str) -> AgentSettings | None:
        return agents_of(self.context.settings()).get(name)

    async def append(self, payload: Payload, subject: str, event: Event) -> Event:
        """Record what happened because of this effect."""
        return await self.context.append(Draft(payload, subject, event.id))

    async def workspace(self, task: TaskState, user: str = "") -> Workspace:
        """The folder of a task, made if it is new."""
        return await self.files.workspace(task, self.tasks.project_of(task), user)

    async def record_workspace(self, task: str, found: Workspace, event: Event) -> None:
        """Record the folder of a task if it is new, so that it is removed when the task has ended."""
        if found.path and self.runs.worktrees.get(task) != found.path:
            await self.append(events.WorkspaceMade(path=found.path, branch=found.branch), task, event)

    async def stop(self, run: Run, soft: float, event: Event) -> None:
        """End all that came out of a run."""
        if run.moment.boot == event.boot:
            await self.context.programs.stop(run.id, run.main, soft)


class RunAgent(_OfAgents):
    """`run-agent`: claims the task, then starts the agent's program in the task's folder.

    Of one claim at most one program is started: whatever fails or is interrupted in between is a failed attempt, and the
    next one has a claim of its own. A program that was started just before a crash is found by its mark.
    """

    action, params = actions.RUN_AGENT.name, actions.RunParams

    def policy(self, params: actions.RunParams) -> Policy:
        return Policy(Safety.VERIFY_FIRST, timeout=120.0)

    async def execute(self, effect: Effect, params: actions.RunParams, event: Event) -> Result:
        try:
            agent, task = known_agent(params.agent, self.context.settings()), self.task(params.task)
            claim = TaskExecuting(agent=agent.name, lease_us=agent.lease)
            token = (await self.append(claim, task.id, event)).seq
        except PulseError as error:
            raise GivenUp(str(error)) from error
        workspace = None
        try:
            workspace = await self.workspace(task, agent.user)
            program = await self.files.program(event.id, token, task, agent, workspace)
            main = await self.context.programs.start(event.id, program)
        except PulseError as error:
            kind = FailureKind.CRASH if workspace else FailureKind.UNBEGUN
            await self._fail(task.id, token, agent, str(error), event, kind)
            if workspace:
                await self.record_workspace(task.id, workspace, event)
            raise GivenUp(str(error)) from error
        return await self._started(task.id, token, agent, workspace, main, event)

    async def _started(
        self, task: str, token: int, agent: AgentSettings, place: Workspace, main: ProcessId, event: Event
    ) -> Result:
        process, where = main._asdict(), {"token": token, "workspace": place.path}
        is_limited = agent.memory or agent.processes or agent.cpu_weight
        fault = await self.context.programs.limits_fault() if is_limited else ""
        started = events.AgentRunStarted(run=event.id, agent=agent.name, unlimited=fault, **process, **where)
        try:
            await self.append(started, task, event)
        except PulseError:
            await self.context.programs.stop(event.id, main, 0.0)  # nobody would watch it
            raise
        self.context.programs.watch(main)
        await self.record_workspace(task, place, event)
        return Result({**process, **where})

    async def _fail(
        self, task: str, token: int, agent: AgentSettings | None, error: str, event: Event, kind: FailureKind
    ) -> None:
        """Record the failure of an attempt."""
        kind = FailureKind.SHORTAGE if tells_of_shortage(error) else kind  # no agent is to blame for that
        failed = failed_attempt(self.task(task), agent, error, kind, self.context.settings(), token)
        await self.append(failed, task, event)

    async def verify(self, effect: Effect, params: actions.RunParams, event: Event) -> Result | None:
        """Whether it was begun: then its program is found, or the attempt has failed."""
        if event.id in self.runs.runs:
            return Result({"already": True})
        task = self.tasks.find(params.task)
        if task is None or task.status is not Status.EXECUTING or task.agent != params.agent:
            return None
        if any(run.token == task.token for run in self.runs.runs.values()):
            return None  # another run has the claim; this one can't get it
        agent = self.agent(params.agent)
        if agent and (main := await self.context.programs.find(event.id)):
            try:
                workspace = await self.workspace(task, agent.user)
            except PulseError:  # it runs, and must be watched, wherever it works
                workspace = Workspace(self.runs.worktrees.get(task.id, ""))
            return await self._started(task.id, task.token, agent, workspace, main, event)
        error, kind = "Pulse ended before the agent was started", FailureKind.UNBEGUN
        await self._fail(task.id, task.token, agent, error, event, kind)
        return Result({"interrupted": True})


class StopRun(_OfAgents):
    """`stop-agent-run`: says why, then ends the program with all that came out of it."""

    action, params = actions.STOP_RUN.name, actions.StopRunParams

    async def execute(self, effect: Effect, params: actions.StopRunParams, event: Event) -> Result:
        run = self.runs.runs.get(params.run)
        if run is None or run.ended is not None:
            return Result({"already": True})
        await self.append(events.AgentRunStopRequested(run=run.id, why=params.why), run.task, event)
        agent = self.agent(run.agent)
        await self.stop(run, agent.soft / US_PER_SECOND if agent else SOFT_S, event)
        return Result({"pid": run.pid})


class PauseRun(_OfAgents):
    """`pause-agent-run`: holds the program with all that came out of it, or has it go on, and says why."""

    action, params = actions.PAUSE_RUN.name, actions.PauseRunParams

    async def execute(self, effect: Effect, params: actions.PauseRunParams, event: Event) -> Result:
        run = self.runs.runs.get(params.run)
        if run is None or run.ended is not None or run.moment.boot != event.boot:
            return Result({"already": True})
        await self.context.programs.pause(run.id, run.main, over=params.over)
        paused = events.AgentRunPaused(run=run.id, why=params.why, over=params.over)
        await self.append(paused, run.task, event)
        return Result({"pid": run.pid})


class CleanAgentRun(_OfAgents):
    """`clean-agent-run`: ends what the program has left behind, keeps the end of its output, and bounds the rest."""

    action, params = actions.CLEAN_RUN.name, actions.CleanRunParams

    async def execute(self, effect: Effect, params: actions.CleanRunParams, event: Event) -> Result:
        if (run := self.runs.runs.get(params.run)) is None:
            return Result({"already": True})
        await self.stop(run, 0.0, event)
        text, most = "", GENERAL.of(self.context.settings()).keep_output
        with suppress(PulseError):  # whoever has deleted it wants the rest cleaned, too
            text = await self.files.output(run, most)
        if text:
            await self.append(events.AgentRunPrinted(text=text), run.id, event)
        agent = self.agent(run.agent)
        await self.files.clean(run, agent.output if agent else 1 << 20, self.runs.runs)
        await self.append(events.AgentRunCleaned(run=run.id), run.task, event)
        return Result()


class EndOrphan(_OfAgents):
    """`end-agent-orphan`: only who still bears the mark of a run that is over."""

    action, params = actions.END_ORPHAN.name, actions.EndOrphanParams

    async def execute(self, effect: Effect, params: actions.EndOrphanParams, event: Event) -> Result:
        programs = self.context.programs
        if params.run in self.runs.runs or params.run not in programs.effects_of(params.pid):
            return Result({"already": True})
        if not params.dry_run:
            await programs.stop(params.run, ProcessId(params.pid, params.started), 0.0)
        return Result({"dry_run": params.dry_run})


class MakeWorkspace(_OfAgents):
    """`make-workspace`: for whoever has claimed a task without being started by Pulse."""

    action, params = actions.MAKE_WORKSPACE.name, actions.WorkspaceParams

    async def execute(self, effect: Effect, params: actions.WorkspaceParams, event: Event) -> Result:
        task = self.task(params.task)
        if task.status is not Status.EXECUTING:
            return Result({"already": True})
        found = await self.workspace(task)
        await self.record_workspace(task.id, found, event)
        return Result({"workspace": found.path, "branch": found.branch})


class RemoveWorkspace(_OfAgents):
    """`remove-workspace`: only what is clean and pushed is removed."""

    action, params = actions.REMOVE_WORKSPACE.name, actions.WorkspaceParams

    async def execute(self, effect: Effect, params: actions.WorkspaceParams, event: Event) -> Result:
        kept, task = self.runs.kept.get(params.task), self.tasks.find(params.task)
        path = self.runs.worktrees.get(params.task, kept.path if kept else "")
        if not path:
            return Result({"already": True})
        is_run = any(run.task == params.task for run in self.runs.runs.values())
        if is_run or (task and task.status not in ENDED):
            raise GivenUp(f"{params.task} has not ended")
        try:
            project = self.tasks.project_of(task) if task else Project()
            why = await self.files.remove_workspace(path, project)
        except PulseError as error:
            why = str(error)
        ended = events.WorkspaceKept(path=path, why=why) if why else events.WorkspaceRemoved()
        await self.append(ended, params.task, event)
        return Result({"kept": why} if why else {})


class OpenPullRequest(_OfAgents):
    """`open-pull-request`: the same one however often it is asked for."""

    action, params = actions.OPEN_PULL_REQUEST.name, actions.PullRequestParams

    async def execute(self, effect: Effect, params: actions.PullRequestParams, event: Event) -> Result:
        task, kept = self.task(params.task), self.runs.kept.get(params.task)
        path = self.runs.worktrees.get(task.id, kept.path if kept else "")
        url = await self.files.open_pull_request(task, self.tasks.project_of(task), path, params)
        if task.pull_request != url:
            await self.append(TaskPullRequestOpened(url=url), task.id, event)
        return Result({"url": url})


def agent_executors(context: ExecutorContext, files: RunFiles) -> Sequence[Executor]:
    """The executors of this capability."""
    of_runs = (RunAgent, PauseRun, StopRun, EndOrphan, CleanAgentRun)
    of_workspaces = (MakeWorkspace, RemoveWorkspace, OpenPullRequest)
    return tuple(executor(context, files) for executor in (*of_runs, *of_workspaces))
