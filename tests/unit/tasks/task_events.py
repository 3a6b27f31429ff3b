"""Events of tasks for tests, with as little to say as possible."""

from typing import Any

from pulse_core.model.event import Event
from pulse_core.model.payload import Payload, parse
from pulse_core.tasks.events import TaskCreated
from pulse_core.tasks.projection import PendingTasks, after
from pulse_core.tasks.task import TaskState
from tests.events import event

ONE, OTHER, THIRD = "task_000001", "task_000002", "task_000003"


class TaskLog:
    """A log of tasks as it grows, one event a second, and what it adds up to."""

    def __init__(self, **project: Any) -> None:
        self.events: list[Event] = []
        self.state = PendingTasks()
        self.say("project-set", "app", **project)

    def say(self, kind: str, subject: str = ONE, **data: Any) -> Event:
        """Record this."""
        return self.record(parse(kind, data), subject)

    def record(self, payload: Payload, subject: str) -> Event:
        one = event(len(self.events) + 1, payload, subject)
        self.events.append(one)
        self.state = after(self.state, (one,))
        return one

    def create(self, id_: str = ONE, **data: Any) -> TaskState:
        """A task of the project `app`."""
        self.record(TaskCreated(project="app", title=f"do {id_}", **data), id_)
        return self.task(id_)

    def claim(self, id_: str = ONE, agent: str = "ada", lease_us: int = 60_000_000) -> int:
        """The token of a claim."""
        return self.say("task-executing", id_, agent=agent, lease_us=lease_us).seq

    def task(self, id_: str = ONE) -> TaskState:
        found = self.state.find(id_)
        assert found is not None
        return found
