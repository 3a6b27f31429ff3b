"""Executors of the actions on tasks: each records one event, unless what it would say is so already."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pulse_core.capability import ExecutorContext
from pulse_core.model.errors import PulseError
from pulse_core.model.event import Draft, Event
from pulse_core.model.kinds import Effect
from pulse_core.model.payload import Payload
from pulse_core.ports.executor import Executor, GivenUp, Policy, Result, Safety
from pulse_core.tasks import actions
from pulse_core.tasks.admission import known_task
from pulse_core.tasks.events import TaskAssigned, TaskClosed, TaskCreated, TaskFailed, TaskReleased
from pulse_core.tasks.projection import TASKS, PendingTasks
from pulse_core.tasks.settings import SETTINGS
from pulse_core.tasks.task import Status, TaskState


@dataclass(frozen=True)
class RecordingExecutor(Executor):
    """Base: an executor that may record, and reads the tasks as they are now."""

    context: ExecutorContext

    def policy(self, params: Any) -> Policy:
        # A rule that wishes again what has just failed would be woken by the failure, for ever. Who is given a task again at
        # once has failed at it.
        pause = 0.0 if self.action == actions.ASSIGN_TASK.name else 2.0
        return Policy(Safety.IDEMPOTENT, timeout=30.0, cooldown=pause)

    @property
    def tasks(self) -> PendingTasks:
        return self.context.state().of(TASKS)

    def task(self, id_: str) -> TaskState:
        """The task; nothing mends it if it is not known."""
        try:
            return known_task(id_, self.tasks)
        except PulseError as error:
            raise GivenUp(str(error)) from error

    async def record(self, payload: Payload, subject: str, event: Event) -> None:
        """Record what happens to a task because of this effect."""
        try:
            await self.context.append(Draft(payload, subject, event.id))
        except PulseError as error:
            raise GivenUp(str(error)) from error


class CreateTask(RecordingExecutor):
    action, params = actions.CREATE_TASK.name, actions.CreateParams

    async def execute(self, effect: Effect, params: actions.CreateParams, event: Event) -> Result:
        id_ = f"task_{event.id.replace('-', '')[-12:]}"  # the same one again after a crash
        of_key = (task for task in self.tasks.tasks.values() if task.key == effect.key)
        if found := next(of_key, self.tasks.find(id_)):
            return Result({"task": found.id, "already": True})
        await self.record(TaskCreated(**params.model_dump(), key=effect.key), id_, event)
        return Result({"task": id_})


class AssignTask(RecordingExecutor):
    action, params = actions.ASSIGN_TASK.name, actions.AssignParams

    async def execute(self, effect: Effect, params: actions.AssignParams, event: Event) -> Result:
        task = self.task(params.task)
        if task.status is Status.ASSIGNED and task.agent == params.agent:
            return Result({"already": True})
        if not params.agent:
            return Result({"nobody": True})
        await self.record(TaskAssigned(agent=params.agent, why=params.why), task.id, event)
        return Result()


class ReleaseTask(RecordingExecutor):
    action, params = actions.RELEASE_TASK.name, actions.ReleaseParams

    async def execute(self, effect: Effect, params: actions.ReleaseParams, event: Event) -> Result:
        task = self.task(params.task)
        if task.token != params.token or task.lease_left(event.moment):  # its holder may have come back
            return Result({"already": True})
        ended: Payload = TaskReleased(token=params.token, why=params.why, expired=True)
        if task.attempts >= SETTINGS.of(self.context.settings()).attempts:
            ended = TaskFailed(token=params.token, error=f"{params.why}; attempts: {task.attempts}")
        await self.record(ended, params.task, event)
        return Result()


class CloseTask(RecordingExecutor):
    action, params = actions.CLOSE_TASK.name, actions.CloseParams

    async def execute(self, effect: Effect, params: actions.CloseParams, event: Event) -> Result:
        task = self.task(params.task)
        if task.status is Status.CLOSED:
            return Result({"already": True})
        needless = actions.is_needless(task, self.context.state().conditions)
        if task.status is not Status.ACKED and not needless:  # a person wanted it done again meanwhile
            raise GivenUp(f"{task.id} is {task.status}; what was not done is not closed")
        await self.record(TaskClosed(why=params.why), params.task, event)
        return Result()


def executors(context: ExecutorContext) -> Sequence[Executor]:
    """The executors of this capability."""
    return (CreateTask(context), AssignTask(context), ReleaseTask(context), CloseTask(context))
