"""What a run may say and read over the socket: of its own task, under its own claim, and nothing else."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from pulse_core.capability import RefusedOnRecord
from pulse_core.model.errors import Refused
from pulse_core.model.event import Draft
from pulse_core.model.json_types import Json
from pulse_core.model.moment import Moment
from pulse_core.model.secret_text import hide_secrets
from pulse_core.projections.state import State
from pulse_core.tasks.admission import known_task
from pulse_core.tasks.events import TaskCreated, TaskFailed, TaskResultRefused
from pulse_core.tasks.listing import task_json
from pulse_core.tasks.projection import TASKS
from pulse_core.tasks.task import COMMANDS, HELD_BY_TOKEN

MOST_PARTS, DEEPEST = 100, 5
"""Open tasks that runs may make of one that is no part, and how deep: they take the room that all tasks have."""


@dataclass(frozen=True)
class RunScope:
    """Implements `pulse_core.capability.Scope`: of a run of this agent, at this task, under the claim `token`."""

    actor: str
    task: str
    token: int
    now: Callable[[], Moment]
    attempts: int
    granted: frozenset[str] = frozenset()

    def bounded(self, draft: Draft, state: State) -> Draft:
        """The draft under its claim, or as a part of its task."""
        payload, tasks = draft.payload, state.of(TASKS)
        if isinstance(payload, TaskCreated):
            task, above = known_task(self.task, tasks), tasks.above(self.task)
            if task.token != self.token:
                words = f"the claim {self.token} of {task.id} is over; nothing becomes a part of it any more"
                said = TaskResultRefused(token=self.token, said=payload.kind, result=payload.title)
                raise RefusedOnRecord(words, said, task.id)
            if payload.parent not in (None, task.id) or payload.project != task.project:
                raise Refused(f"a run may only make parts of its own task, {task.id}, in {task.project}")
            if len(above) > DEEPEST:
                raise Refused(f"{task.id} is {DEEPEST} parts deep; a run may add none to it, a person may")
            if len(tasks.below(above[-1])) >= MOST_PARTS:
                raise Refused(f"{above[-1]} has {MOST_PARTS} open parts; a run may add no more, a person may")
            news = {"parent": task.id, "priority": min(payload.priority, task.priority)}
            return replace(draft, payload=payload.model_copy(update=news), data="")
        if payload.kind not in HELD_BY_TOKEN or draft.subject != self.task:
            may = ", ".join(sorted(COMMANDS[kind] for kind in HELD_BY_TOKEN & COMMANDS.keys()))
            may = f"a run may say upulse task {may} of {self.task}, and that it failed, and add parts of it"
            raise Refused(f"{may}; nothing else")
        if isinstance(payload, TaskFailed):  # whether it counts Pulse alone says
            retry = None if known_task(self.task, tasks).attempts >= self.attempts else payload.retry_us
            payload = TaskFailed(token=self.token, error=hide_secrets(payload.error), retry_us=retry)
        return replace(draft, payload=payload.model_copy(update={"token": self.token}), data="")

    def shown(self, state: State) -> Mapping[str, Json]:
        """Its task."""
        return task_json(known_task(self.task, state.of(TASKS)), self.now())
