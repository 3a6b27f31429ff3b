"""Tasks and projects for people and programs: which there are, what is ready for whom, and the one of a short id."""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from pulse_core.model.errors import Ambiguous, UnknownName
from pulse_core.model.moment import US_PER_SECOND, Moment, iso
from pulse_core.projections.state import Snapshot
from pulse_core.tasks.projection import TASKS, PendingTasks
from pulse_core.tasks.task import Project, Status, TaskState, obstacles

ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
"""Without letters that look like a digit, or like each other."""
LENGTH = 10


def new_task_id() -> str:
    """An id that no other task has: 50 random bits."""
    import secrets  # which only a command needs

    return "task_" + "".join(secrets.choice(ALPHABET) for _ in range(LENGTH))


def find_task(tasks: PendingTasks, name: str) -> TaskState:
    """The task of this id, or the only one whose id begins or ends so, with or without `task_`.

    Raises UnknownName or Ambiguous.
    """
    known = {**tasks.ended, **tasks.tasks}
    if name in known:
        return known[name]
    word = name.removeprefix("task_")
    found = [id_ for id_ in known if word and (id_[5:].startswith(word) or id_.endswith(word))]
    if len(found) > 1:
        raise Ambiguous("task", name, found)
    if not found:
        raise UnknownName("task", name, known)
    return known[found[0]]


def is_ready(task: TaskState, agent: str, tasks: PendingTasks, now: Moment) -> bool:
    """Whether this agent may claim it now."""
    return (
        task.status in (Status.PENDING, Status.ASSIGNED)
        and is_member(agent, tasks.projects.get(task.project))
        and not task.retry_left(now)
        and not any(obstacles(task, agent))
    )


def is_member(agent: str, project: Project | None) -> bool:
    """Whether this agent may do the project's tasks."""
    return project is not None and (not project.members or agent in project.members)


def task_json(task: TaskState, now: Moment) -> Mapping[str, Any]:
    """A task as JSON values."""
    left = task.lease_left(now)
    return {
        "id": task.id,
        "project": task.project,
        "title": task.title,
        "prompt": task.prompt,
        "status": str(task.standing),
        "column": task.column,
        "priority": task.priority,
        "labels": list(task.labels),
        "agent": task.agent or None,
        "attempts": task.attempts,
        "token": task.token or None,
        "lease_left_s": None if left is None else left / US_PER_SECOND,
        "parent": task.parent,
        "blockers": list(task.blockers),
        "waits_for": list(task.waits_for),
        "stuck_on": list(task.stuck_on),
        "parts": list(task.parts),
        "due": None if task.due is None else iso(task.due),
        "created": iso(task.created.at),
        "by": task.by,
        "since": iso(task.since.at) if task.since else None,
        "result": task.result or None,
        "data": dict(task.data),
        "error": task.error or None,
        "pull_request": task.pull_request or None,
    }


def project_json(name: str, project: Project, tasks: PendingTasks) -> Mapping[str, Any]:
    """A project as JSON values."""
    return {
        "name": name,
        "repository": project.repository or None,
        "base": project.base,
        "columns": list(project.columns),
        "members": list(project.members),
        "review": project.review,
        "open": len(tasks.by_project.get(name, ())),
    }


def status_lines(curr: Snapshot) -> Iterator[str]:
    """How many are open, by their status, if there are any."""
    if tasks := curr.of(TASKS).tasks:
        by_status = Counter(str(task.standing) for task in tasks.values())
        yield f"tasks     {len(tasks)} open: {', '.join(f'{n} {status}' for status, n in by_status.most_common())}"
