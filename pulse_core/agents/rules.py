"""Rules of agents: tasks are assigned and begun, runs are bounded and cleaned up after, and who fails is set aside."""

from dataclasses import replace

from pulse_core.actions import ActionDeclaration
from pulse_core.agents import actions
from pulse_core.agents.assignment import obstacles_of, plan, under_way
from pulse_core.agents.availability import CONDITION, Budgets, pause_left, unavailable
from pulse_core.agents.limits import RunSample, reason_to_pause, reason_to_stop
from pulse_core.agents.projection import RUNS
from pulse_core.agents.settings import AGENTS, GENERAL, agents_of
from pulse_core.model.durations import duration_text
from pulse_core.model.json_types import Json
from pulse_core.model.moment import US_PER_SECOND, Moment
from pulse_core.model.verdict import Verdict
from pulse_core.projections.state import Snapshot
from pulse_core.rules.notices import told_while
from pulse_core.rules.onion import Inner
from pulse_core.tasks.actions import ASSIGN_TASK
from pulse_core.tasks.fitness import obstacles
from pulse_core.tasks.projection import TASKS
from pulse_core.tasks.task import ENDED, Status, TaskState

HELD = "agent-run:"
"""What the topics of notices about held runs begin with; the task's id follows."""
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
    left = curr.effects.pause_left(f"{action.name}:{of}", AGAIN, curr.now, since)
    return verdict.after_wait(left) if left else verdict.plus(action.wish(of, params, why))


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
    return _wish(verdict, curr, actions.RUN_AGENT, f"{task.id}:{task.attempts}", params, why, task.since)


async def make_workspaces(prev: Snapshot, curr: Snapshot, inner: Inner) -> Verdict:
    """Make the worktree of each task that somebody has claimed whom Pulse does not start."""
    verdict = await inner(prev, curr)
    tasks, worktrees, executing = curr.of(TASKS), curr.of(RUNS).worktrees, Status.EXECUTING
    claimed = [one for one in tasks.tasks.values() if one.status is executing and one.id not in worktrees]
    claimed = [one for one in claimed if tasks.project_of(one).repository]
    begun = under_way(curr) if claimed else ()  # which looks at all that is open
    for task in claimed:
        if task.id not in begun:
            why = f"{task.agent} has claimed it"
            verdict = _wish(verdict, curr, actions.MAKE_WORKSPACE, task.id, {"task": task.id}, why)
    return verdict


async def stop_runs(prev: Snapshot, curr: Snapshot, inner: Inner) -> Verdict:
    """End each run whose claim is over, or that goes beyond a bound of its agent."""
    verdict = await inner(prev, curr)
    agents, window = agents_of(curr.settings), curr.window(KEY).last
    for run in curr.of(RUNS).live:
        agent, task = agents.get(run.agent), curr.of(TASKS).find(run.task)
        sample = RunSample.of(window.data.get(run.id) if window else None)
        if why := run.stop or reason_to_stop(run, task, agent, sample, curr.now):
            verdict = _wish(verdict, curr, actions.STOP_RUN, run.id, {"run": run.id, "why": why}, why)
            continue
        if pause := reason_to_pause(run, agent, sample, curr.of(RUNS), curr.now):
            verdict = _wish(verdict, curr, actions.PAUSE_RUN, run.id, {"run": run.id, "why": pause}, pause)
        if agent:
            verdict = verdict.after_wait(agent.timeout - curr.now.since(run.moment))
            verdict = verdict.after_wait(agent.hold - curr.now.since(run.paused) if run.paused else None)
    return verdict


async def clean_up(prev: Snapshot, curr: Snapshot, inner: Inner) -> Verdict:
    """End what runs have left behind, and remove the worktrees of tasks that have ended."""
    verdict = await inner(prev, curr)
    runs, tasks = curr.of(RUNS), curr.of(TASKS)
    for run in runs.runs.values():
        if run.ended is not None:
            why = f"the run of {run.agent} has ended"
            verdict = _wish(verdict, curr, actions.CLEAN_RUN, run.id, {"run": run.id}, why)
    busy = {run.task for run in runs.runs.values()}
    for id_ in runs.worktrees:
        task = tasks.find(id_)
        if id_ not in busy and (task is None or task.status in ENDED):
            verdict = _wish(verdict, curr, actions.REMOVE_WORKSPACE, id_, {"task": id_}, "the task has ended")
    return verdict


async def end_orphans(prev: Snapshot, curr: Snapshot, inner: Inner) -> Verdict:
    """End what runs have left behind once it is old enough, or have it recorded once that it would be."""
    verdict, general = await inner(prev, curr), GENERAL.of(curr.settings)
    last, is_dry = curr.window(ORPHANS).last, general.orphans == "tell"
    for pid, one in last.data.items() if last else ():
        if one["age_us"] < general.orphan_age or one["effect"] in curr.of(RUNS).runs:
            continue
        of = f"{pid}:{one['started']}{':dry' if is_dry else ''}"
        if is_dry and f"{actions.END_ORPHAN.name}:{of}" in curr.effects.settled_at:
            continue
        params = {"run": one["effect"], "pid": int(pid), "started": one["started"], "dry_run": is_dry}
        reason = f"{one['agent']} has left process {pid} behind: its run is over, and its parent is gone"
        verdict = _wish(verdict, curr, actions.END_ORPHAN, of, params, reason)
    return verdict


async def tell_people(prev: Snapshot, curr: Snapshot, inner: Inner) -> Verdict:
    """Tell people once of each agent that is set aside and each run that is held, and when that is over."""
    verdict, raised, held = await inner(prev, curr), curr.conditions.raised, {}
    for run in curr.of(RUNS).live:
        if run.paused and (agent := agents_of(curr.settings).get(run.agent)):
            rest = agent.timeout - run.paused.since(run.moment)  # it uses its time up while it is held, too
            till = "unless a person has it go on" if agent.hold <= rest else "when its time is over"
            left = f"it is stopped after {duration_text(min(agent.hold, rest))}, {till}"
            how = f"upulse effect add pause-agent-run --key go-on --param run={run.id} --param why=… --param over=true"
            held[run.task] = f"{run.agent}: {run.held}; {left}: {how}"
    failing = {of[len(CONDITION) :]: one.evidence for of, one in raised.items() if of.startswith(CONDITION)}
    over = "it works again, or a person has resumed it"
    verdict = told_while(verdict, curr, CONDITION, failing, "agent {} fails".format, over)
    return told_while(verdict, curr, HELD, held, "the run of {} is held".format, "it goes on, or has ended")


RULES = (assign_tasks, run_assigned_tasks, make_workspaces, stop_runs, clean_up, end_orphans, tell_people)
"""The outermost first."""
