"""Puts a good config of a gateway back."""

import asyncio
from dataclasses import dataclass

from pulse_adapters.openclaw.gateway_files import GatewayFiles
from pulse_core.capability import ExecutorContext
from pulse_core.model.event import Event
from pulse_core.model.kinds import Effect
from pulse_core.openclaw.rule import RESTORE_CONFIG, RestoreParams
from pulse_core.openclaw.settings import OPENCLAW
from pulse_core.ports.executor import GivenUp, Policy, Result, Safety


@dataclass(frozen=True)
class RestoreConfig:
    """`restore-config`: done once, however often it is begun; what was changed meanwhile is left alone."""

    context: ExecutorContext
    action, params = RESTORE_CONFIG.name, RestoreParams

    def policy(self, params: RestoreParams) -> Policy:
        return Policy(Safety.IDEMPOTENT, timeout=30.0)

    def check(self, params: RestoreParams) -> None:
        return

    async def verify(self, effect: Effect, params: RestoreParams, event: Event) -> Result | None:
        return None

    async def execute(self, effect: Effect, params: RestoreParams, event: Event) -> Result:
        for gateway in OPENCLAW.of(self.context.settings()):
            if gateway.process == params.process:
                files = GatewayFiles(self.context.home, gateway)
                return Result(await asyncio.to_thread(files.restore, params.bad, params.good))
        raise GivenUp(f"there is no [[openclaw]] of {params.process!r} any more")
