"""A run that goes on by guidance that has changed is stopped, or paused until that is acknowledged; or people are told."""

from pathlib import PurePosixPath
from typing import Literal

from pydantic import Field

from pulse_core.agents.actions import PAUSE_RUN, STOP_RUN
from pulse_core.agents.projection import RUNS, Run
from pulse_core.guidance.projection import GUIDANCE
from pulse_core.model.durations import duration_text
from pulse_core.model.kinds import Effect
from pulse_core.model.names import NOTIFY
from pulse_core.model.verdict import Verdict
from pulse_core.projections.notices import PREFIX
from pulse_core.projections.state import Snapshot
from pulse_core.rules.onion import Inner
from pulse_core.settings.groups import Duration, Group
from pulse_core.settings.settings_group import SettingsGroup
from pulse_core.tasks.projection import TASKS, PendingTasks

UNACKNOWLEDGED = "changed, and it has not acknowledged that in"
"""Why a run is held, by which it is known that it was held here."""
KEYS = {"remind": f"{PREFIX}guided-run", "pause": PAUSE_RUN.name, "stop": STOP_RUN.name}
"""By `then`: how the keys of the effects begin."""


class GuidedRunsSettings(Group):
    """`[guided_runs]`: runs of agents in projects whose guidance or constraints have changed."""

    after: Duration = Field(
        0, ge=0, description="how long a run may go on without an acknowledgement; 0: as long as it wants"
    )
    then: Literal["remind", "pause", "stop"] = Field(
        "pause", description="what becomes of it; remind: people are told of the run, its task and its agent"
    )


SETTINGS: SettingsGroup[GuidedRunsSettings] = SettingsGroup(
    "guided_runs", GuidedRunsSettings, GuidedRunsSettings()
)


async def hold_unguided_runs(prev: Snapshot, curr: Snapshot, inner: Inner) -> Verdict:
    """Hold or end each run in a project with a change that has waited too long, or tell people, once for each change."""
    verdict, settings = await inner(prev, curr), SETTINGS.of(curr.settings)
    pending = {root: one for root, one in curr.of(GUIDANCE).projects.items() if one.pending_id}
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
            key = f"{KEYS[settings.then]}:{of}"
            if key in curr.effects.settled_at:
                continue
            if key in curr.effects.keys:
                break
            waited = curr.now.at - max(project.pending_since, run.moment.at)
            if (left := settings.after - waited) > 0:
                verdict = verdict.after_wait(min(left, settings.after))
                continue
            files = " and ".join(project.pending)
            why = f"{files} in {root}/.pulse {UNACKNOWLEDGED} {duration_text(waited)}"
            verdict = verdict.plus(_effect(settings.then, run, of, why))
            break
    return verdict


def _effect(then: str, run: Run, of: str, why: str) -> Effect:
    """What becomes of a run; of: it and the change, for the effect's key."""
    if then != "remind":
        return (STOP_RUN if then == "stop" else PAUSE_RUN).wish(of, {"run": run.id, "why": why}, why)
    title = f"{run.agent} goes on by old guidance at {run.task}"
    params = {"title": title, "text": f"The run {run.id} of {run.agent} at {run.task} goes on: {why}"}
    return Effect(action=NOTIFY, key=f"{KEYS[then]}:{of}", params=params, reason=why)


def _is_in(run: Run, root: str, tasks: PendingTasks) -> bool:
    """Whether a run works in this project, or in a worktree of its repository."""
    if run.workspace and PurePosixPath(run.workspace).is_relative_to(root):
        return True
    task = tasks.find(run.task)
    project = tasks.projects.get(task.project) if task else None
    return project is not None and project.repository == root
