"""The watcher of runs: each program is looked at every second, and its end is known at once."""

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import suppress

from pulse_core.agents.availability import CONDITION, failing_agents
from pulse_core.agents.events import AgentRunCounted, AgentRunEnded, AgentSetAside
from pulse_core.agents.failures import CONSEQUENCES, FailureKind, failed_attempt, failure_of, kind_of
from pulse_core.agents.limits import RunSample, excess_cost, excess_output, reason_to_pause, reason_to_stop
from pulse_core.agents.projection import RUNS, Run, cost_in
from pulse_core.agents.rules import KEY
from pulse_core.agents.run_files import RunFiles
from pulse_core.agents.settings import AgentSettings, agents_of
from pulse_core.agents.tools import RunAnswer
from pulse_core.capability import WatcherContext
from pulse_core.model.errors import PulseError
from pulse_core.model.event import Draft
from pulse_core.model.json_types import Json
from pulse_core.model.kinds import ConditionCleared, ConditionRaised
from pulse_core.model.payload import Payload
from pulse_core.model.vitals import Reading, Window
from pulse_core.ports.programs import ProgramObservation
from pulse_core.tasks.events import TaskAcked, TaskHeartbeat
from pulse_core.tasks.projection import TASKS
from pulse_core.tasks.stats import STATS
from pulse_core.tasks.task import TaskState

OFTEN_S, FAILING_S, IDLE_S, GIT_S = 1.0, 10.0, 3_600.0, 5.0
FAILING, GONE = "failing", "it is no agent of the settings any more"


class AgentRunsWatcher:
    """The watcher `agent-runs`. A sample has for each run: a `RunSample`, processes, and why it is to end.

    It concludes heartbeats of claims, the ends of runs with what they mean for their tasks, and which agents fail. While
    nothing runs it is idle.
    """

    name = key = KEY
    conditions, timeout = (CONDITION,), 120.0

    def __init__(self, context: WatcherContext, files: RunFiles) -> None:
        self._context, self._files = context, files
        self.nudge = asyncio.Event()
        self._watched: set[str] = set()
        context.programs.listen(self.nudge.set)

    @property
    def interval(self) -> float:
        """Seconds until there may be something to see."""
        state = self._context.state()
        if state.of(RUNS).live:
            return OFTEN_S
        is_failing = self._failing() or any(name.startswith(CONDITION) for name in state.conditions.raised)
        return FAILING_S if is_failing else IDLE_S

    def should_wake(self, window: Window) -> bool:
        """Whether a run is to end before its time."""
        newest = window.last.data if window.last else {}
        return any(isinstance(one, Mapping) and one.get("why") for one in newest.values())

    async def collect(self) -> Reading:
        """Look at all runs."""
        data: dict[str, Json] = {}
        drafts: list[Draft] = []
        agents, live = agents_of(self._context.settings()), self._context.state().of(RUNS).live
        self._watched &= {run.id for run in live}
        for run in live:
            drafts += await self._look(run, agents.get(run.agent), data)
        return Reading(data, (*drafts, *self._conditions()))

    async def _look(self, run: Run, agent: AgentSettings | None, data: dict[str, Json]) -> list[Draft]:
        now = self._context.clock.now()
        is_here = run.moment.boot == now.boot
        seen = await self._context.programs.look(run.main) if is_here else ProgramObservation(False)
        if not seen.alive:
            return await self._end(run, agent, seen.exit)
        if run.id not in self._watched:  # an earlier daemon may have started it
            self._watched.add(run.id)
            self._context.programs.watch(run.main)
        progress = await self._files.progress(run, agent)
        sample = progress._replace(memory=seen.memory, cpu_us=seen.cpu_us, pid=seen.pid)
        runs, task = self._context.state().of(RUNS), self._context.state().of(TASKS).find(run.task)
        why = reason_to_stop(run, task, agent, sample, now) or reason_to_pause(run, agent, sample, runs, now)
        why = "" if run.stop else why
        data[run.id] = {**sample._asdict(), "processes": seen.processes, **({"why": why} if why else {})}
        said: list[Draft] = []
        if task and task.token == run.token and (task.lease_left(now) or 0) * 3 < task.lease_us * 2:
            said.append(Draft(TaskHeartbeat(token=run.token), run.task))
        if agent and sample.tokens and now.since(run.counted or run.moment) >= agent.rate_over:
            said.append(Draft(AgentRunCounted(run=run.id, tokens=sample.tokens), run.task))
        return said

    async def _end(self, run: Run, agent: AgentSettings | None, code: int | None) -> list[Draft]:
        try:
            progress = await self._files.progress(run, agent)
            answer = await self._files.answer(run, agent)
        except PulseError as fault:
            answer, progress = RunAnswer(False, error=str(fault)), RunSample()
        code = code if (written := await self._files.exit_code(run)) is None else written
        run = self._context.state().of(RUNS).runs.get(run.id, run)  # it may be told to end since this look
        stop = run.stop or excess_output(agent, progress)
        error, kind = failure_of(answer, code, stop), kind_of(answer, code, stop, agent)
        told = {name: getattr(progress, name) for name in ("output", "turns", "tokens")}
        ended = AgentRunEnded(run=run.id, exit=code, error=error, usage=dict(answer.usage), **told)
        drafts = [Draft(ended, run.task)]
        task = self._context.state().of(TASKS).find(run.task)
        if task and task.token == run.token:
            if error and CONSEQUENCES[kind].sets_aside:  # before its task is free again
                drafts.append(Draft(AgentSetAside(why=f"{kind}: {error}"), run.agent))
            self.nudge.set()  # who fails by now is told at once
            failure = self._failure(run, task, cost_in(answer.usage), error, kind) if error else None
            drafts.append(Draft(await (failure or self._success(run, task, answer)), run.task))
        return drafts

    async def _failure(self, run: Run, task: TaskState, cost: float, why: str, kind: FailureKind) -> Payload:
        settings, runs = self._context.settings(), self._context.state().of(RUNS)
        agent = agents_of(settings).get(run.agent)
        if far := excess_cost(run, agent, cost, runs, self._context.clock.now()):
            why, kind = f"{why}; {far}", FailureKind.SPENT
        elif run.paused:
            kind = FailureKind.SPENT
        elif not run.stop and await self._files.is_disk_full(run):
            why, kind = f"{why}; the disk is full", FailureKind.SHORTAGE
        whole = runs.cost_of_task(task.id) + cost
        return failed_attempt(task, agent, why, kind, settings, run.token, whole)

    async def _success(self, run: Run, task: TaskState, answer: RunAnswer) -> Payload:
        data: dict[str, Json] = {**answer.usage, "workspace": run.workspace}
        project = self._context.state().of(TASKS).project_of(task)
        with suppress(PulseError, TimeoutError):  # whatever the agent has done to its folder, it did its task
            async with asyncio.timeout(GIT_S):  # within the shortest lease: heartbeats wait for it
                data["commits"] = list(await self._files.commits(run.workspace, project))
        return TaskAcked(token=run.token, result=answer.text, data=data)

    def _failing(self) -> Mapping[str, str]:
        """Why, by the names of their conditions."""
        return failing_agents(self._context.state(), self._context.settings(), self._context.clock.now())

    def _conditions(self) -> Iterator[Draft]:
        """What has changed about who fails."""
        failing, state = self._failing(), self._context.state()
        raised, stats = state.conditions.raised, state.of(STATS)
        for name, why in failing.items():
            since = failed.at if (failed := stats[name.removeprefix(CONDITION)].failed_at) else 0
            said = ConditionRaised(evidence=why, state=FAILING, failing=0 if name in raised else since)
            if name not in raised or raised[name].evidence != said.evidence:
                yield Draft(said, name)
        for name in raised:
            if name.startswith(CONDITION) and name not in failing:
                gone = name.removeprefix(CONDITION) not in agents_of(self._context.settings())
                words = GONE if gone else "it works again, or a person has resumed it"
                yield Draft(ConditionCleared(evidence=words, unwatched=gone), name)
