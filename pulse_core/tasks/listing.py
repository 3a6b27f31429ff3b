"""Tasks and projects for people and programs: which there are, and the one of a short id."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from datetime import datetime
from typing import Any

from pulse_core.capability import FoldWithout
from pulse_core.model.moment import US_PER_SECOND, Moment, iso
from pulse_core.model.short_ids import id_meant
from pulse_core.projections.state import Snapshot
from pulse_core.tasks.admission import known_project
from pulse_core.tasks.projection import TASKS, PendingTasks
from pulse_core.tasks.task import Status, TaskState


def find_task(tasks: PendingTasks, name: str) -> TaskState:
    """The task of this id, or the only one that begins or ends so, `task_` or not; raises UnknownName or Ambiguous."""
    known = {**tasks.ended, **tasks.tasks}
    return known[id_meant("task", name, known, "task_")]


def task_report(name: str, curr: Snapshot, fold_without: FoldWithout) -> Mapping[str, Any] | None:
    """How the task of this id is, and why; None if there is none."""
    if (task := curr.of(TASKS).find(name)) is None:
        return None
    error = task.error or ""
    if error and task.standing in (Status.ASSIGNED, Status.EXECUTING):  # it is of the attempt before this one
        error = f"the attempt before: {error}"
    words = "; ".join(filter(None, (task.title, error, f"attempts: {task.attempts}")))
    since = iso((task.since or task.created).at)
    return {"kind": "task", "name": name, "state": str(task.standing), "since": since, "why": words}


AS_IT_IS = ("id", "project", "title", "prompt", "column", "priority", "attempts", "parent", "by", "data")
LISTED = ("labels", "blockers", "waits_for", "stuck_on", "parts")
TIMES = ("due", "created", "since")
OR_NONE = ("agent", "token", "result", "error", "pull_request")


def task_json(task: TaskState, now: Moment) -> Mapping[str, Any]:
    """A task as JSON values."""
    left = task.lease_left(now)
    return {
        **{name: getattr(task, name) for name in AS_IT_IS},
        **{name: list(getattr(task, name)) for name in LISTED},
        **{name: getattr(task, name) or None for name in OR_NONE},
        "status": str(task.standing),
        "lease_left_s": None if left is None else left / US_PER_SECOND,
        "due": None if task.due is None else iso(task.due),
        "created": iso(task.created.at),
        "since": iso(task.since.at) if task.since else None,
    }


def task_of(said: Mapping[str, Any], now: Moment) -> TaskState:
    """The task that these JSON values tell of, as `task_json` makes them; its status is the one for people."""
    at = {name: said[name] and round(datetime.fromisoformat(said[name]).timestamp() * 1e6) for name in TIMES}
    left, given = said["lease_left_s"], {name: said[name] for name in (*AS_IT_IS, *OR_NONE) if said[name]}
    given |= {name: tuple(said[name]) for name in LISTED}
    return TaskState(
        **given,
        status=Status(said["status"]),
        lease_us=round((left or 0) * US_PER_SECOND),
        beat=None if left is None else now,
        due=at["due"],
        created=now.plus(at["created"] - now.at),
        since=now.plus(at["since"] - now.at) if at["since"] else None,
    )


def project_json(name: str, tasks: PendingTasks) -> Mapping[str, Any]:
    """A project as JSON values; raises Refused if there is none of that name."""
    project, open_ = known_project(name, tasks), len(tasks.of_project(name))
    return {"name": name, **asdict(project), "repository": project.repository or None, "open": open_}


def tasks_in_columns(tasks: PendingTasks, project: str) -> Mapping[str, list[TaskState]]:
    """A project's open tasks and the newest that have ended, by column, in each the first to be done first."""
    of = [one for one in (*tasks.tasks.values(), *tasks.ended.values()) if one.project == project]
    of.sort(key=lambda one: (-one.priority, one.created.at))
    columns = tasks.projects[project].columns
    return {column: [one for one in of if one.column == column] for column in columns}


def board_json(tasks: PendingTasks, project: str, now: Moment) -> list[Mapping[str, Any]]:
    """The boards of a project, or of all, as JSON values: `columns` has the tasks of each."""
    return [
        {
            **project_json(name, tasks),
            "columns": {
                column: [task_json(one, now) for one in some]
                for column, some in tasks_in_columns(tasks, name).items()
            },
        }
        for name in ([project] if project else tasks.projects)
    ]


def status_lines(curr: Snapshot) -> Iterator[str]:
    """How many are open, by their status, if there are any."""
    if tasks := curr.of(TASKS).tasks:
        by_status = Counter(str(task.standing) for task in tasks.values())
        yield f"tasks     {len(tasks)} open: {', '.join(f'{n} {status}' for status, n in by_status.most_common())}"
