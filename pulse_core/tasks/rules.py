"""Rules of tasks: claims that have ended are taken back, what was done is closed, conditions that stay become tasks."""

from pulse_core.model.durations import duration_text
from pulse_core.model.moment import utc_text
from pulse_core.model.text import as_data
from pulse_core.model.verdict import Verdict
from pulse_core.projections.conditions import Condition
from pulse_core.projections.state import Snapshot
from pulse_core.rules.notices import told_while
from pulse_core.rules.onion import Inner
from pulse_core.tasks.actions import CLOSE_TASK, CREATE_TASK, OF_CONDITION, RELEASE_TASK, is_needless
from pulse_core.tasks.projection import TASKS
from pulse_core.tasks.settings import SETTINGS
from pulse_core.tasks.task import Status


async def release_ended_claims(prev: Snapshot, curr: Snapshot, inner: Inner) -> Verdict:
    """Take back every claim whose holder has said nothing for its lease, and look again when the next one ends."""
    verdict = await inner(prev, curr)
    for task in curr.of(TASKS).tasks.values():
        if not task.token or (left := task.lease_left(curr.now)) is None:
            continue
        if left:
            verdict = verdict.after_wait(left)
            continue
        why = f"{task.agent} has said nothing for {duration_text(task.lease_us)}"
        params = {"task": task.id, "token": task.token, "why": why}
        verdict = verdict.plus(RELEASE_TASK.wish(task.id, params, why))
    return verdict


async def close_done_tasks(prev: Snapshot, curr: Snapshot, inner: Inner) -> Verdict:
    """Close what was done, in projects in which nobody reviews it, and what nobody needs any more."""
    verdict, tasks, acked = await inner(prev, curr), curr.of(TASKS), Status.ACKED
    for task in tasks.tasks.values():
        if task.status is acked and not tasks.project_of(task).review:
            why = f"{task.agent} did it, and nobody reviews {task.project}"
        elif task.key and is_needless(task, curr.conditions):
            why = f"{task.key.removeprefix(OF_CONDITION)} is over, and nobody works on it"
        else:
            continue
        verdict = verdict.plus(CLOSE_TASK.wish(task.id, {"task": task.id, "why": why}, why))
    return verdict


async def tell_stuck_tasks(prev: Snapshot, curr: Snapshot, inner: Inner) -> Verdict:
    """Tell people of each task that goes on only when one of them has decided about it, and when that is over."""
    tasks, most = curr.of(TASKS).tasks.values(), SETTINGS.of(curr.settings).attempts
    spent = {one.id for one in tasks if one.status is Status.PENDING and one.attempts >= most}
    stuck = (one for one in tasks if one.status in (Status.FAILED, Status.BLOCKED) or one.id in spent)
    news = {one.id: f"{one.title}: {one.error or 'given back'}; upulse task retry {one.id}" for one in stuck}
    over = "it was retried, closed or given up"
    return told_while(await inner(prev, curr), curr, "task:", news, "{} waits for a person".format, over)


async def tasks_for_conditions(prev: Snapshot, curr: Snapshot, inner: Inner) -> Verdict:
    """Make a task of a condition that has stood for as long as the settings say, whatever was done about it."""
    verdict, settings, tasks = await inner(prev, curr), SETTINGS.of(curr.settings), curr.of(TASKS)
    if not settings.for_conditions:
        return verdict
    if settings.project not in tasks.projects:
        return verdict.noting(f"no task is made of a condition: there is no project {settings.project}")
    known, ended = ({one.key: one.created for one in some.values()} for some in (tasks.tasks, tasks.ended))
    for name, condition in curr.conditions.raised.items():
        key = OF_CONDITION + name
        since, settled = curr.now.since(condition.since), curr.effects.settled_at.get(key, ended.get(key))
        left, was_made = settings.for_conditions - since, bool(settled and curr.now.since(settled) <= since)
        if left > 0:
            verdict = verdict.after_wait(left)
        elif key not in known and not was_made:  # of one that was closed no other is made
            title = f"{name} went wrong, first seen {utc_text(condition.began.at)}"[:200]
            params = {"project": settings.project, "title": title, "prompt": _prompt(name, condition)}
            verdict = verdict.plus(CREATE_TASK.wish(f"condition:{name}", params, condition.evidence))
    return verdict


def _prompt(name: str, condition: Condition) -> str:
    tries = condition.measures
    done = [f"- {one.action}: {'done' if one.worked else one.told or 'did not work'}" for one in tries]
    said = "\n".join([condition.evidence, "", "What was done about it:", *(done or ["- nothing"])])
    return f"The condition {name} was raised. Look whether it stands, find out why, and mend the cause.\n\n{as_data(said)}"


RULES = (release_ended_claims, close_done_tasks, tasks_for_conditions, tell_stuck_tasks)
"""The outermost first."""
