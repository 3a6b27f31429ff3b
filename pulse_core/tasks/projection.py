"""Tasks that are not done yet, the newest of those that are, and the projects."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from pulse_core.model.event import Event
from pulse_core.model.payload import decode_plain
from pulse_core.projections.state import StateProjection
from pulse_core.tasks import events as kinds
from pulse_core.tasks.task import ENDED, MOVES, STUCK, Project, Status, TaskState

REMEMBERED = 500
"""Ended tasks that are kept, beside those that open ones wait for."""
FEW = 50
"""Open tasks up to which they are stored with each tick that emitted effects."""
COLUMN_OF: Mapping[Status, str] = {Status.EXECUTING: "In progress", Status.ACKED: "Review"}
"""The column to which a task moves by itself, if its project has one of that name."""
_CREATED = ("project", "title", "prompt", "priority", "column", "parent", "due", "key")
"""What a task takes over from the event that created it, beside its labels and blockers."""


@dataclass(frozen=True, slots=True)
class PendingTasks:
    """Open tasks by their ids, oldest first; the newest that have ended, oldest first; projects by their names."""

    tasks: Mapping[str, TaskState] = field(default_factory=dict)
    ended: Mapping[str, TaskState] = field(default_factory=dict)
    projects: Mapping[str, Project] = field(default_factory=dict)

    def of_project(self, name: str) -> list[TaskState]:
        """The open tasks of a project."""
        return [task for task in self.tasks.values() if task.project == name]

    def project_of(self, task: TaskState) -> Project:
        """A task's project; one without anything if it was removed."""
        return self.projects.get(task.project, Project())

    def above(self, id_: str) -> list[str]:
        """The ids of a task and of what it is a part of, up to what is no part of anything, or is forgotten."""
        found = {id_: self.find(id_)}
        while (task := found[id_]) and task.parent and task.parent not in found:
            found[id_ := task.parent] = self.find(task.parent)
        return list(found)

    def below(self, id_: str) -> list[TaskState]:
        """The open parts of a task, and theirs."""
        return [one for one in self.tasks.values() if one.parent and id_ in self.above(one.parent)]

    def find(self, id_: str) -> TaskState | None:
        """The task of this id, if it is open or remembered."""
        return self.tasks.get(id_) or self.ended.get(id_)


def after(state: PendingTasks, events: Iterable[Event]) -> PendingTasks:
    """The tasks after more events; what the table of moves does not allow is passed over."""
    table, touched = _TaskTable(state), False
    for event in events:
        if act := _ACTS.get(event.kind):
            act(table, event)
            touched = True
    return PendingTasks(table.tasks, table.ended, table.projects) if touched else state


class _TaskTable:
    """A working copy for one batch of events: each mapping is copied once for all of them."""

    def __init__(self, before: PendingTasks) -> None:
        self.tasks, self.ended, self.projects = dict(before.tasks), dict(before.ended), dict(before.projects)
        self.dependents: dict[str, dict[str, None]] | None = None

    def project_set(self, event: Event) -> None:
        said = {name: one for name, one in decode_plain(event.data).items() if name in Project.__slots__}
        given: Any = {name: tuple(one) if isinstance(one, list) else one for name, one in said.items()}
        self.projects[event.subject] = Project(**given)

    def project_removed(self, event: Event) -> None:
        self.projects.pop(event.subject, None)

    def created(self, event: Event) -> None:
        data = decode_plain(event.data)
        if not data or event.subject in self.tasks:
            return  # its data was redacted; or a log from elsewhere, since the writer never lets this happen
        given: dict[str, Any] = {name: data[name] for name in _CREATED if name in data}
        self.ended.pop(event.subject, None)
        task = TaskState(
            id=event.subject,
            created=event.moment,
            by=event.actor,
            since=event.moment,
            labels=tuple(data.get("labels", ())),
            blockers=tuple(data.get("blockers", ())),
            **given,
        )
        self._put(task := self._waiting(task) if task.blockers else task)
        if task.parent and (parent := self.tasks.get(task.parent) or self.ended.get(task.parent)):
            parent = parent.changed(parts=(*parent.parts, task.id))
            if parent.id in self.ended:
                self.ended[parent.id] = parent
            else:
                was_stuck = parent.standing in STUCK
                self._put(parent := self._waiting(parent))
                if was_stuck != (parent.standing in STUCK):
                    self._tell_dependents(parent.id)

    def _put(self, task: TaskState) -> None:
        self.tasks[task.id] = task
        if self.dependents is not None:
            for one in task.waits_for:
                self.dependents.setdefault(one, {})[task.id] = None

    def _waiting(self, task: TaskState) -> TaskState:
        """The task with what it waits for; what nobody remembers was closed long ago."""
        known = {id_: self.tasks.get(id_) or self.ended.get(id_) for id_ in (*task.blockers, *task.parts)}
        left = {id_: one for id_, one in known.items() if one and one.status is not Status.CLOSED}
        return task.changed(
            parts=tuple(id_ for id_ in task.parts if id_ in left),
            waits_for=tuple(left),
            stuck_on=tuple(id_ for id_, one in left.items() if one.standing in STUCK),
        )

    def _dependents_of(self, id_: str) -> list[TaskState]:
        """The open tasks that wait for this one."""
        if self.dependents is None:
            self.dependents = {}
            for task in self.tasks.values():
                self._put(task)
        found = (self.tasks.get(other) for other in self.dependents.get(id_, ()))
        return [one for one in found if one and id_ in one.waits_for]

    def _tell_dependents(self, id_: str) -> None:
        """What waits for this task learns what became of it, and so does what waits for that."""
        ahead = [id_]
        while ahead:
            for one in self._dependents_of(ahead.pop()):
                self.tasks[one.id] = told = self._waiting(one)
                if (one.standing in STUCK) != (told.standing in STUCK):
                    ahead.append(one.id)

    def happened(self, event: Event) -> None:
        task = self.tasks.get(event.subject) or self.ended.get(event.subject)
        if task is None or event.kind not in MOVES[task.status]:
            return
        data = decode_plain(event.data)
        if "token" in data and data["token"] != task.token:
            return  # said under a claim that is over
        after_ = _changed(task, event, data)
        if after_.status is not task.status:
            after_ = self._in_column(after_)
        if after_.blockers != task.blockers or task.id in self.ended:  # nobody told it what was closed
            after_ = self._waiting(after_)
        self.ended.pop(task.id, None)
        if after_.status in ENDED:
            self.tasks.pop(task.id, None)
            self._end(after_)
        else:
            self._put(after_)
        if after_.status is Status.CLOSED or (after_.standing in STUCK) != (task.standing in STUCK):
            self._tell_dependents(task.id)

    def pull_request_opened(self, event: Event) -> None:
        for tasks in (self.tasks, self.ended):
            if task := tasks.get(event.subject):
                tasks[task.id] = task.changed(pull_request=decode_plain(event.data).get("url", ""))

    def _in_column(self, task: TaskState) -> TaskState:
        """The task in the column that its status wants; one that is to be done again lies where it was claimed from."""
        columns = self.projects.get(task.project, Project()).columns
        if task.status is Status.PENDING:
            column = task.claimed_from if task.claimed_from in columns else task.column
            return task.changed(column=column, claimed_from="")
        column = columns[-1] if task.status is Status.CLOSED else COLUMN_OF.get(task.status, task.column)
        if column == task.column or column not in columns:
            return task
        return task.changed(column=column, claimed_from=task.claimed_from or task.column)

    def _end(self, task: TaskState) -> None:
        self.ended[task.id] = task.changed(prompt="") if task.status is Status.CLOSED else task
        if (surplus := len(self.ended) - REMEMBERED) > 0:
            for id_ in tuple(islice((one for one in self.ended if not self._dependents_of(one)), surplus)):
                del self.ended[id_]


def _changed(task: TaskState, event: Event, data: Mapping[str, Any]) -> TaskState:
    """The task after an event that may happen to it."""
    kind = event.kind
    if kind == kinds.TaskHeartbeat.kind:
        return task.changed(beat=event.moment)
    if kind == kinds.TaskMoved.kind:
        return task.changed(column=data.get("column", task.column), claimed_from="")
    if kind == kinds.TaskBlockersSet.kind:
        return task.changed(blockers=tuple(data.get("blockers", ())))
    status = MOVES[task.status][kind] or task.status
    if kind == kinds.TaskFailed.kind and data.get("retry_us") is None:
        status = Status.FAILED
    # Whatever else happens, a claim is over, and so is the pause after a failure.
    over = {"token": 0, "lease_us": 0, "beat": None, "retry_us": 0}
    return task.changed(**{**over, "status": status, "since": event.moment, **_news(task, event, data)})


def _news(task: TaskState, event: Event, data: Mapping[str, Any]) -> Mapping[str, Any]:
    """What else an event changes that moves a task to another status."""
    kind = event.kind
    if kind == kinds.TaskAssigned.kind:
        return {"agent": data.get("agent", "")}
    if kind == kinds.TaskExecuting.kind:
        claim = {"token": event.seq, "lease_us": data.get("lease_us", 0), "beat": event.moment}
        return {"agent": data.get("agent", ""), "attempts": task.attempts + 1, **claim}
    if kind == kinds.TaskAcked.kind:
        return {"result": data.get("result", ""), "data": data.get("data", {}), "error": ""}
    if kind == kinds.TaskFailed.kind:
        is_short = bool(data.get("blameless"))
        error, is_counted = data.get("error", ""), not is_short and not data.get("unbegun")
        counts = {"attempts": task.attempts - is_short, "shortages": task.shortages + 1 if is_short else 0}
        counts["same_failures"] = task.failures_with(error) if is_counted else 0
        return {"agent": "", "error": error, "retry_us": data.get("retry_us") or 0, **counts}
    if kind == kinds.TaskReleased.kind:
        return {"agent": "", "error": data.get("why", "")}
    if kind == kinds.TaskRetried.kind:
        return {"agent": "", "attempts": 0, "error": "", "result": "", "data": {}}
    return {"error": "" if kind == kinds.TaskClosed.kind else data.get("why", "")}


_ACTS: Mapping[str, Callable[[_TaskTable, Event], None]] = {
    **{kind.kind: _TaskTable.happened for kind in kinds.KINDS if kind is not kinds.TaskResultRefused},
    kinds.TaskPullRequestOpened.kind: _TaskTable.pull_request_opened,
    kinds.TaskCreated.kind: _TaskTable.created,
    kinds.ProjectSet.kind: _TaskTable.project_set,
    kinds.ProjectRemoved.kind: _TaskTable.project_removed,
}

TASKS = StateProjection(
    "pending-tasks", 6, PendingTasks, frozenset(_ACTS), after, lambda state: len(state.tasks) <= FEW
)
