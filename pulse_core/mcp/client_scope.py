"""What a client with a token may say: of the tasks that it holds itself, and that it claims one."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from pulse_core.model.errors import Refused
from pulse_core.model.event import Draft
from pulse_core.model.json_types import Json
from pulse_core.projections.state import State
from pulse_core.tasks.admission import known_task
from pulse_core.tasks.events import TaskExecuting, TaskMoved
from pulse_core.tasks.projection import TASKS
from pulse_core.tasks.task import HELD_BY_TOKEN

HELD = frozenset({*HELD_BY_TOKEN, TaskMoved.kind})


@dataclass(frozen=True)
class ClientScope:
    """Implements `pulse_core.capability.Scope`: of the client of this name."""

    actor: str

    def bounded(self, draft: Draft, state: State) -> Draft:
        """The draft, for itself alone."""
        payload = draft.payload
        if isinstance(payload, TaskExecuting):
            return replace(draft, payload=payload.model_copy(update={"agent": self.actor}), data="")
        if payload.kind not in HELD:
            kinds = ", ".join(sorted({TaskExecuting.kind, *HELD}))
            raise Refused(f"a client over MCP may say {kinds} of tasks; nothing else")
        task = known_task(draft.subject, state.of(TASKS))
        if task.agent != self.actor or not task.token:
            raise Refused(f"{task.id} is not held by {self.actor}; claim it before")
        return draft

    def shown(self, state: State) -> Mapping[str, Json]:
        """Its name."""
        return {"client": self.actor}
