"""A run that goes on by guidance that has changed is stopped, or paused until that is acknowledged."""

from pathlib import PurePosixPath

from pulse_core.agents.actions import PAUSE_RUN, STOP_RUN
from pulse_core.agents.projection import RUNS, Run
from pulse_core.guidance.projection import GUIDANCE
from pulse_core.guided_runs.settings import SETTINGS
from pulse_core.model.durations import rough_duration
from pulse_core.model.verdict import Verdict
from pulse_core.projections.state import Snapshot
from pulse_core.rules.onion import Inner
from pulse_core.tasks.projection import TASKS, PendingTasks

UNACKNOWLEDGED = "changed, and it has not acknowledged that in"
"""Why a run is held, by which it is known that it was held here."""


async def hold_unguided_runs(prev: Snapshot, curr: Snapshot, inner: Inner) -> Verdict:
    """Hold or end each run in a project with a change that has waited too long, once for each such change."""
    verdict, settings = await inner(prev, curr), SETTINGS.of(curr.settings)
    pending = {root: one for root, one in curr.of(GUIDANCE).projects.items() if one.pending_id}
    action = STOP_RUN if settings.then == "stop" else PAUSE_RUN
    for run in curr.of(RUNS).live:
        roots = [root for root in pending if _is_in(run, root, curr.of(TASKS))]
        if run.paused and UNACKNOWLEDGED in run.held and not roots:
            why = "what has changed is acknowledged"
            params = {"run": run.id, "why": why, "over": True}
            verdict = verdict.plus(PAUSE_RUN.wish(f"{run.id}:over:{run.paused.at}", params, why))
        if run.paused or run.stop or not settings.after:
            continue
        for root in roots:
            project = pending[root]
            of = f"{run.id}:{project.pending_id}"
            if f"{action.name}:{of}" in curr.effects.settled_at:
                continue
            waited = curr.now.at - max(project.pending_since, run.moment.at)
            if (left := settings.after - waited) > 0:
                verdict = verdict.after_wait(min(left, settings.after))
                continue
            files = " and ".join(project.pending)
            why = f"{files} in {root}/.pulse {UNACKNOWLEDGED} {rough_duration(settings.after)}"
            verdict = verdict.plus(action.wish(of, {"run": run.id, "why": why}, why))
            break
    return verdict


def _is_in(run: Run, root: str, tasks: PendingTasks) -> bool:
    """Whether a run works in this project, or in a worktree of its repository."""
    if run.workspace and PurePosixPath(run.workspace).is_relative_to(root):
        return True
    task = tasks.find(run.task)
    project = tasks.projects.get(task.project) if task else None
    return project is not None and project.repository == root
