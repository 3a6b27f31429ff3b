"""Rules of agents: tasks are assigned and begun, runs are bounded and cleaned up after, and who fails is set aside."""

from dataclasses import replace

from pulse_core.actions import NOTIFY, ActionDeclaration
from pulse_core.agents.actions import (
    CLEAN_RUN,
    END_ORPHAN,
    MAKE_WORKSPACE,
    PAUSE_RUN,
    REMOVE_WORKSPACE,
    RUN_AGENT,
    STOP_RUN,
)
from pulse_core.agents.assignment import obstacles_of, plan, under_way
from pulse_core.agents.availability import Budgets, failing_agents, pause_left, unavailable
from pulse_core.agents.limits import RunSample, reason_to_pause, reason_to_stop
from pulse_core.agents.projection import RUNS
from pulse_core.agents.settings import AGENTS, GENERAL, agents_of
from pulse_core.model.json_types import Json
from pulse_core.model.moment import US_PER_SECOND, Moment
from pulse_core.model.verdict import Verdict
from pulse_core.projections.state import Snapshot
from pulse_core.rules.onion import Inner
from pulse_core.rules.survival.notices import is_told
from pulse_core.tasks.actions import ASSIGN_TASK
from pulse_core.tasks.fitness import obstacles
from pulse_core.tasks.projection import TASKS
from pulse_core.tasks.task import ENDED, Project, Status, TaskState

CONDITION = "agent:"
"""What the names of conditions about agents begin with; the agent's name follows."""
KEY = "agent-runs"
"""The watcher of runs."""
ORPHANS = "agent-orphans"
"""The watcher of what they have left behind."""
AGAIN = 60 * US_PER_SECOND
"""How long after an effect was settled the same one is wished again: what failed would else be tried without a pause."""


async def assign_tasks(prev: Snapshot, curr: Snapshot, inner: Inner) -> Verdict:
    """Give each ready task to the best agent that has room for it, unless a rule inside has wished otherwise."""
    verdict = await inner(prev, curr)
    tasks = curr.of(TASKS).tasks
    if not tasks or not AGENTS.of(curr.settings) or not GENERAL.of(curr.settings).assign:
        return verdict
    given, waiting = plan(curr)
    assigning = [one for one in verdict.effects if one.action == ASSIGN_TASK.name]
    wished = {str(one.params.get("task")) for one in assigning}
    if vetoes := [one for one in assigning if not one.params.get("agent")]:
        words = "goes to nobody, as"
        notes = (f"{one.params.get('task')} {words} {one.rule} wishes: {one.reason}" for one in vetoes)
        kept = tuple(one for one in verdict.effects if one not in vetoes)
        verdict = replace(verdict, effects=kept).noting(*notes)
    for task, agent, why in given:
        if task.id not in wished:
            params = {"task": task.id, "agent": agent.name, "why": why}
            verdict = verdict.plus(ASSIGN_TASK.wish(task.id, params, why))
            verdict = _run(verdict, curr, task, agent.name)  # it begins as soon as that is recorded
    pausing = (one for one in tasks.values() if one.retry_us and one.status is Status.PENDING)
    retries = (one.retry_left(curr.now) for one in pausing)
    verdict = verdict.after_wait(min((left for left in retries if left), default=None))
    budgets = Budgets(curr)
    for one in AGENTS.of(curr.settings):  # when it may get tasks again that is set aside or over its budget
        trial = pause_left(one.name, curr.state, curr.settings, curr.now) or None
        verdict = verdict.after_wait(trial).after_wait(budgets.near(one)[0] or None)
    return verdict.noting(*obstacles_of(waiting, curr))


def _wish(
    verdict: Verdict,
    curr: Snapshot,
    action: ActionDeclaration,
    of: str,
    params: dict[str, Json],
    why: str,
    since: Moment | None = None,
) -> Verdict:
    """The verdict with this wish, or once its pause is over. of: what the key names beside the action.

    since: what was done before then was done about something else, and needs no pause.
    """
    settled = curr.effects.settled_at.get(f"{action.name}:{of}")
    if settled and since and curr.now.since(settled) > curr.now.since(since):
        settled = None
    if left := max(0, AGAIN - curr.now.since(settled)) if settled else 0:
        return verdict.after_wait(left)
    return verdict.plus(action.wish(of, params, why))


async def run_assigned_tasks(prev: Snapshot, curr: Snapshot, inner: Inner) -> Verdict:
    """Start the agent that a task is assigned to, as soon as it may."""
    verdict = await inner(prev, curr)
    agents, tasks, assigned = agents_of(curr.settings), curr.of(TASKS), Status.ASSIGNED
    budgets = Budgets(curr)
    for task in tasks.tasks.values() if agents else ():
        if task.status is not assigned or (agent := agents.get(task.agent)) is None:
            continue
        if unavailable(agent, curr, budgets) or any(obstacles(task, agent, tasks.projects[task.project])):
            continue
        verdict = _run(verdict, curr, task, agent.name)
        if task.id not in budgets.begun:
            budgets.reserve(agent.name)
    return verdict


def _run(verdict: Verdict, curr: Snapshot, task: TaskState, agent: str) -> Verdict:
    """The verdict with the wish that this agent begins a task."""
    params, why = {"task": task.id, "agent": agent}, f"{task.title} is assigned to {agent}"
    return _wish(verdict, curr, RUN_AGENT, f"{task.id}:{task.attempts}", params, why, task.since)


async def make_workspaces(prev: Snapshot, curr: Snapshot, inner: Inner) -> Verdict:
    """Make the worktree of each task that somebody has claimed whom Pulse does not start."""
    verdict = await inner(prev, curr)
    tasks, worktrees, executing = curr.of(TASKS), curr.of(RUNS).worktrees, Status.EXECUTING
    claimed = [
        task
        for task in tasks.tasks.values()
        if task.status is executing
        and task.id not in worktrees
        and tasks.projects.get(task.project, Project()).repository
    ]
    begun = under_way(curr) if claimed else ()  # which looks at all that is open
    for task in claimed:
        if task.id not in begun:
            why = f"{task.agent} has claimed it"
            verdict = _wish(verdict, curr, MAKE_WORKSPACE, task.id, {"task": task.id}, why)
    return verdict


async def stop_runs(prev: Snapshot, curr: Snapshot, inner: Inner) -> Verdict:
    """End each run whose claim is over, or that goes beyond a bound of its agent."""
    verdict = await inner(prev, curr)
    agents, window = agents_of(curr.settings), curr.window(KEY).last
    for run in curr.of(RUNS).live:
        agent, task = agents.get(run.agent), curr.of(TASKS).find(run.task)
        sample = RunSample.of(window.data.get(run.id) if window else None)
        why = run.stop or reason_to_stop(run, task, agent, sample, curr.now)
        if not why:
            if pause := reason_to_pause(run, agent, sample, curr.of(RUNS), curr.now):
                verdict = _wish(verdict, curr, PAUSE_RUN, run.id, {"run": run.id, "why": pause}, pause)
            if agent:
                verdict = verdict.after_wait(agent.timeout - curr.now.since(run.moment))
                verdict = verdict.after_wait(agent.hold - curr.now.since(run.paused) if run.paused else None)
            continue
        verdict = _wish(verdict, curr, STOP_RUN, run.id, {"run": run.id, "why": why}, why)
    return verdict


async def clean_up(prev: Snapshot, curr: Snapshot, inner: Inner) -> Verdict:
    """End what runs have left behind, and remove the worktrees of tasks that have ended."""
    verdict = await inner(prev, curr)
    runs, tasks = curr.of(RUNS), curr.of(TASKS)
    for run in runs.runs.values():
        if run.ended is not None:
            why = f"the run of {run.agent} has ended"
            verdict = _wish(verdict, curr, CLEAN_RUN, run.id, {"run": run.id}, why)
    busy = {run.task for run in runs.runs.values()}
    for id_ in runs.worktrees:
        task = tasks.find(id_)
        if id_ not in busy and (task is None or task.status in ENDED):
            verdict = _wish(verdict, curr, REMOVE_WORKSPACE, id_, {"task": id_}, "the task has ended")
    return verdict


async def end_orphans(prev: Snapshot, curr: Snapshot, inner: Inner) -> Verdict:
    """End what runs have left behind once it is old enough, or have it recorded once that it would be."""
    verdict, general = await inner(prev, curr), GENERAL.of(curr.settings)
    last, is_dry = curr.window(ORPHANS).last, general.orphans == "tell"
    for pid, one in last.data.items() if last else ():
        if one["age_us"] < general.orphan_age or one["effect"] in curr.of(RUNS).runs:
            continue
        of = f"{pid}:{one['started']}{':dry' if is_dry else ''}"
        if is_dry and f"{END_ORPHAN.name}:{of}" in curr.effects.settled_at:
            continue
        params = {"run": one["effect"], "pid": int(pid), "started": one["started"], "dry_run": is_dry}
        reason = f"{one['agent']} has left process {pid} behind: its run is over, and its parent is gone"
        verdict = _wish(verdict, curr, END_ORPHAN, of, params, reason)
    return verdict


async def tell_of_failing_agents(prev: Snapshot, curr: Snapshot, inner: Inner) -> Verdict:
    """Tell people of an agent that is set aside, and when it works again."""
    verdict = await inner(prev, curr)
    failing = failing_agents(curr.state, curr.settings, curr.now)
    for agent in AGENTS.of(curr.settings):
        topic = f"agent:{agent.name}"
        if (agent.name in failing) == (is_over := is_told(topic, curr)):
            continue
        title = f"{'resolved: ' if is_over else ''}agent {agent.name} fails"
        failed = f"{failing.get(agent.name)} failures in a row; it is set aside for a while"
        text = "it works again" if is_over else failed
        params = {"title": title, "text": text, "over": is_over}
        verdict = verdict.plus(NOTIFY.wish(topic, params, text))
    return verdict


RULES = (
    assign_tasks, run_assigned_tasks, make_workspaces, stop_runs, clean_up, end_orphans, tell_of_failing_agents,
)  # fmt: skip
"""The outermost first."""
