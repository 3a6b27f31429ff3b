"""An executor of a capability that is imported and made when the first of its effects is requested."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from pulse_core.actions import ActionDeclaration
from pulse_core.model.event import Event
from pulse_core.model.kinds import Effect
from pulse_core.ports.executor import Executor, Policy, Result


@dataclass(frozen=True)
class ExecutorOnDemand:
    """Stands for the executor of a declared action. made: all executors of its capability, which they are made by."""

    declaration: ActionDeclaration
    made: Callable[[], Mapping[str, Executor]]

    @property
    def action(self) -> str:
        return self.declaration.name

    @property
    def params(self) -> type[BaseModel]:
        return self.declaration.params

    @property
    def executor(self) -> Executor:
        """The executor itself."""
        return self.made()[self.action]

    def policy(self, params: Any) -> Policy:
        return self.executor.policy(params)

    def check(self, params: Any) -> None:
        self.executor.check(params)

    async def execute(self, effect: Effect, params: Any, event: Event) -> Result:
        return await self.executor.execute(effect, params, event)

    async def verify(self, effect: Effect, params: Any, event: Event) -> Result | None:
        return await self.executor.verify(effect, params, event)
