"""The executor `collect`: writes a diagnostic bundle of the current state for later analysis."""

from pathlib import Path

from pulse_adapters.workers.conversation import ask
from pulse_adapters.workers.environment import EFFECT_MARK, inherited_environment
from pulse_adapters.workers.framing import WorkerFault
from pulse_adapters.workers.worker import module_program
from pulse_core.actions import COLLECT, CollectParams
from pulse_core.model.errors import PulseError
from pulse_core.model.event import Event
from pulse_core.model.kinds import Effect
from pulse_core.ports.executor import Executor, Policy, Result, Safety

TIMEOUT_S = 120.0


class Collect(Executor):
    """Writes the bundle in a child process, since reading everything takes long.

    program: the module that the child runs; it is sent the home, the bundle's name, and its reason.
    """

    action, params = COLLECT.name, CollectParams

    def __init__(self, program: str, home: Path) -> None:
        self._program, self._home = program, home

    def policy(self, params: CollectParams) -> Policy:
        """Repeated after a crash: the new bundle replaces the unfinished one."""
        return Policy(Safety.IDEMPOTENT, timeout=TIMEOUT_S + 10)

    async def execute(self, effect: Effect, params: CollectParams, event: Event) -> Result:
        """Write the bundle; the result has its path, its size, and what could not be read."""
        order = {"home": str(self._home), "name": event.id, "why": params.why or effect.reason}
        program = module_program(self._program, env={**inherited_environment(), EFFECT_MARK: event.id})
        try:
            return Result(await ask(program, order, dict, seconds=TIMEOUT_S))
        except WorkerFault as fault:
            raise PulseError(f"no bundle was written: its process {fault}") from None
