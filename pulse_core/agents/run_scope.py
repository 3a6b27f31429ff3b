"""What a run may say and read over the socket: of its own task, under its own claim, and nothing else."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from pulse_core.capability import RefusedOnRecord
from pulse_core.model.errors import Refused
from pulse_core.model.event import Draft
from pulse_core.model.json_types import Json
from pulse_core.model.moment import Moment
from pulse_core.projections.state import State
from pulse_core.tasks.admission import known_task
from pulse_core.tasks.events import TaskCreated, TaskResultRefused
from pulse_core.tasks.listing import task_json
from pulse_core.tasks.projection import TASKS
from pulse_core.tasks.task import COMMANDS, HELD_BY_TOKEN


@dataclass(frozen=True)
class RunScope:
    """Implements `pulse_core.capability.Scope`: of a run of this agent, at this task, under the claim `token`."""

    actor: str
    task: str
    token: int
    now: Callable[[], Moment]
    granted: frozenset[str] = frozenset()

    def bounded(self, draft: Draft, state: State) -> Draft:
        """The draft under its claim, or as a part of its task."""
        payload = draft.payload
        if isinstance(payload, TaskCreated):
            task = known_task(self.task, state.of(TASKS))
            if task.token != self.token:
                words = f"the claim {self.token} of {task.id} is over; nothing becomes a part of it any more"
                said = TaskResultRefused(token=self.token, said=payload.kind, result=payload.title)
                raise RefusedOnRecord(words, said, task.id)
            if payload.parent not in (None, task.id) or payload.project != task.project:
                raise Refused(f"a run may only make parts of its own task, {task.id}, in {task.project}")
            return replace(draft, payload=payload.model_copy(update={"parent": task.id}), data="")
        if payload.kind not in HELD_BY_TOKEN or draft.subject != self.task:
            may = ", ".join(sorted(COMMANDS[kind] for kind in HELD_BY_TOKEN & COMMANDS.keys()))
            raise Refused(
                f"a run may say upulse task {may} of {self.task}, and add parts of it; nothing else"
            )
        return replace(draft, payload=payload.model_copy(update={"token": self.token}), data="")

    def shown(self, state: State) -> Mapping[str, Json]:
        """Its task."""
        tasks = state.of(TASKS)
        return task_json(known_task(self.task, tasks), self.now())
