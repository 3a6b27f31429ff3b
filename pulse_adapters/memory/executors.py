"""Executors that act on a `MemoryHost`, or only write down that they acted."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel, ConfigDict

from pulse_adapters.memory.host import MemoryHost
from pulse_core.model.event import Event
from pulse_core.model.json_types import Json
from pulse_core.model.kinds import Effect
from pulse_core.ports.executor import Policy, Result, Safety


async def at_once(event: Event) -> None:
    """An action that takes no time and always works."""


@dataclass
class MemoryExecutor:
    """Implements `pulse_core.ports.Executor`: does `deed` and keeps the ids of effects.

    began and done differ where a deed was cut off; `verify` answers from `done`, as one who can look.
    """

    action: str = "note"
    rule: Policy = field(default_factory=lambda: Policy(Safety.IDEMPOTENT, retries=2))
    deed: Callable[[Event], Awaitable[None]] = at_once
    began: list[str] = field(default_factory=list)
    done: list[str] = field(default_factory=list)

    class Params(BaseModel):
        """Anything goes."""

        model_config = ConfigDict(extra="allow")

    @property
    def params(self) -> type[BaseModel]:
        return self.Params

    def policy(self, params: Any) -> Policy:
        return self.rule

    def check(self, params: Any) -> None:
        return None

    async def execute(self, effect: Effect, params: Any, event: Event) -> Result:
        self.began.append(event.id)
        await self.deed(event)
        self.done.append(event.id)
        return Result(await self.outcome(effect))

    async def outcome(self, effect: Effect) -> dict[str, Json]:
        """What an acked effect says of its result."""
        return {}

    async def verify(self, effect: Effect, params: Any, event: Event) -> Result | None:
        return Result({"seen": True}) if event.id in self.done else None


@dataclass
class MemoryRestart(MemoryExecutor):
    """`restart-process` on a MemoryHost; spawning takes `seconds`."""

    action: str = "restart-process"
    rule: Policy = field(default_factory=lambda: Policy(Safety.VERIFY_FIRST))
    host: MemoryHost = field(default_factory=MemoryHost)
    seconds: float = 0.001

    async def outcome(self, effect: Effect) -> dict[str, Json]:
        await asyncio.sleep(self.seconds)
        name = str(effect.params["process"])
        process = self.host.processes.get(name)
        if effect.params.get("if_dead") and process and process.answering:
            return {"already": True, "pid": process.found.pid, "started": process.found.started}
        self.host.kill(name)
        found = self.host.start(name)
        return {"pid": found.pid, "started": found.started}


@dataclass
class MemoryStop(MemoryExecutor):
    """`stop-process` on a MemoryHost."""

    action: str = "stop-process"
    host: MemoryHost = field(default_factory=MemoryHost)

    async def outcome(self, effect: Effect) -> dict[str, Json]:
        self.host.kill(str(effect.params["process"]))
        return {}
