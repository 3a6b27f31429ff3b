"""The tasks of a home as they are now, and changes of one."""

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from upulse_cli.options import open_home
from upulse_cli.output import CommandResult

if TYPE_CHECKING:
    from pulse_core.app.append import Appended
    from pulse_core.app.context import HomeContext
    from pulse_core.tasks.projection import PendingTasks


def current_tasks(home: "HomeContext") -> "PendingTasks":
    """The tasks after the last event; for a run that may not enter the home, its own one, as the daemon shows it."""
    from pulse_core.app.state import current_value
    from pulse_core.tasks.listing import task_of
    from pulse_core.tasks.projection import TASKS, PendingTasks

    if not is_outside(home):
        return current_value(home, TASKS)
    own = task_of(home.daemon.shown(), home.clock.now())
    return PendingTasks({own.id: own})


def is_outside(home: "HomeContext") -> bool:
    """Whether this is a run of an agent that may not enter the home, and knows what the daemon shows it alone."""
    return bool(os.environ.get("PULSE_TASK")) and not os.access(home.layout.path, os.X_OK)


def change(home: str | None, name: str, kind: str, data: Mapping[str, Any]) -> CommandResult:
    """Record what happens to the task of this id, or of its beginning or end."""
    from pulse_core.app.append import append
    from pulse_core.tasks.listing import find_task

    where = open_home(home)
    task = find_task(current_tasks(where), name)
    given = {key: value for key, value in data.items() if value is not None}
    return task_change(where, task.id, answer=append(where, kind, task.id, given))


def task_change(
    home: "HomeContext", id_: str, text: str = "", answer: "Appended | None" = None
) -> CommandResult:
    """What has become of a task; a run that may not enter the home knows of another one no more than its id."""

    def value() -> Mapping[str, Any]:
        from pulse_core.tasks.listing import task_json

        task = current_tasks(home).find(id_)
        return task_json(task, home.clock.now()) if task else {"id": id_}

    return CommandResult(text, value, answer=answer)


def events_about(home: "HomeContext", subject: str, *kinds: str) -> Sequence[Mapping[str, Any]]:
    """Events of one task or run, of these kinds or all, as JSON values, oldest first; unknown to a run outside."""
    from pulse_core.ports.readers import EventQuery

    if is_outside(home):
        return ()
    with home.events() as log:
        return [event.spelled() for event in log.events(EventQuery(subject=subject, kinds=kinds))]


def task_ids(home: "HomeContext", _begun: str) -> Iterator[str]:
    """The ids of open tasks."""
    return iter(current_tasks(home).tasks)


def project_names(home: "HomeContext", _begun: str) -> Iterator[str]:
    """The names of the projects."""
    return iter(current_tasks(home).projects)
