"""The executor `collect`: a bundle of what is known at this moment, for whoever looks into it later."""

import json
from collections.abc import Callable, Sequence

from pulse_adapters.host.outputs import last_words
from pulse_adapters.host.spawn import Spawner
from pulse_core.actions.commands import COLLECT, CollectParams
from pulse_core.model.errors import PulseError
from pulse_core.model.event import Event
from pulse_core.model.kinds import Effect
from pulse_core.ports import Policy, Result, Safety

TIMEOUT_S = 120.0


class Collect:
    """Has a child process write the bundle, since reading everything takes its time.

    command: from the effect's id and the reason to the argv of that child, which prints what it wrote as JSON.
    """

    action, params = COLLECT.name, CollectParams

    def __init__(self, spawner: Spawner, command: Callable[[str, str], Sequence[str]]) -> None:
        self._spawner, self._command = spawner, command

    def policy(self, params: CollectParams) -> Policy:
        """Again after a crash: it takes the place of the unfinished one."""
        return Policy(Safety.IDEMPOTENT, timeout=TIMEOUT_S + 10)

    def check(self, params: CollectParams) -> None:
        """Everything may be collected."""

    async def execute(self, effect: Effect, params: CollectParams, event: Event) -> Result:
        """Write the bundle; the result says where it lies, how large it is, and what could not be read."""
        argv = self._command(event.id, params.why or effect.reason)
        outcome = await self._spawner.run(argv, timeout=TIMEOUT_S, marker=event.id)
        if outcome.exit != 0:
            raise PulseError(f"no bundle was written: {last_words(outcome.output) or outcome.exit}")
        try:
            return Result(json.loads(outcome.output.splitlines()[-1]))
        except (ValueError, IndexError) as error:
            raise PulseError(f"the bundle's writer said no sense: {last_words(outcome.output)}") from error

    async def verify(self, effect: Effect, params: CollectParams, event: Event) -> Result | None:
        """Never asked: it is collected again."""
        return None
