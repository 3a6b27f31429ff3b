"""Which tasks an agent may do: asked by assignment, by whoever lists what is ready, and when a claim is recorded."""

from collections.abc import Iterator

from pulse_core.model.moment import Moment
from pulse_core.settings.settings import Settings
from pulse_core.tasks.projection import COLUMN_OF, PendingTasks
from pulse_core.tasks.settings import WORKERS, TaskWorker
from pulse_core.tasks.task import Project, Status, TaskState

READY, CLAIMED = "Ready", COLUMN_OF[Status.EXECUTING]
"""Where new tasks lie; where a claim has moved one, and a failure has left it."""


def worker(name: str, project: Project, settings: Settings) -> TaskWorker:
    """Who does tasks under this name: without `[[agent]]` one that does what lies in Ready, or in a project that has no such
    column in any but the last."""
    columns = (READY,) if READY in project.columns else project.columns[:-1] or project.columns
    known = (one for one in WORKERS.of(settings) if one.name == name)
    return next(known, TaskWorker.model_construct(name=name, columns=columns))


def unfitness(agent: TaskWorker, task: TaskState, project: Project) -> str:
    """Why an agent may not do a task, or can't; empty if it may. One to whom it was assigned has only to be a member."""
    if not project.has_member(agent.name):
        return f"is no member of {task.project}; its members are {', '.join(project.members)}"
    if task.status is Status.ASSIGNED and task.agent == agent.name:
        return ""
    if lacking := sorted(set(task.labels) - set(agent.labels)) if agent.labels else []:
        return f"can't do {', '.join(lacking)}"
    if task.column not in (*agent.columns, CLAIMED):
        return f"does nothing of the column {task.column}"
    if agent.projects and task.project not in agent.projects:
        return f"does nothing of {task.project}"
    return ""


def obstacles(task: TaskState, agent: TaskWorker, project: Project) -> Iterator[str]:
    """Why this agent may not claim it, in sentences; nothing if it may."""
    if task.status is Status.ASSIGNED and task.agent != agent.name:
        yield f"it is assigned to {task.agent}"
    elif why := unfitness(agent, task, project):
        yield f"{agent.name} {why}"
    if task.waits_for:
        stuck = f", of which {', '.join(task.stuck_on)} failed or can't go on" if task.stuck_on else ""
        yield f"it waits for {', '.join(task.waits_for)}{stuck}"


def ready_tasks(tasks: PendingTasks, agent: str, settings: Settings, now: Moment) -> list[TaskState]:
    """What this agent may claim now, the first to be done first."""
    workers = {name: worker(agent, project, settings) for name, project in tasks.projects.items()}
    ready = [
        task
        for task in tasks.tasks.values()
        if task.status in (Status.PENDING, Status.ASSIGNED)
        and not task.retry_left(now)
        and not any(obstacles(task, workers[task.project], tasks.projects[task.project]))
    ]
    return sorted(ready, key=lambda one: (-one.priority, one.created.at))
