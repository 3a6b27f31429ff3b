"""The executor `collect`: a bundle of what is known at this moment, for whoever looks into it later."""

from pathlib import Path
from typing import NamedTuple

from pulse_adapters.workers.conversation import ask
from pulse_adapters.workers.environment import EFFECT_MARK, passed_on
from pulse_adapters.workers.framing import WorkerFault
from pulse_adapters.workers.messages import Seq
from pulse_adapters.workers.worker import module
from pulse_core.actions.commands import COLLECT, CollectParams
from pulse_core.model.errors import PulseError
from pulse_core.model.event import Event
from pulse_core.model.kinds import Effect
from pulse_core.ports import Policy, Result, Safety

TIMEOUT_S = 120.0


class WrittenBundle(NamedTuple):
    """What its child says of a bundle: where it lies, how large it is, and what could not be read."""

    path: str
    bytes: Seq
    missing: tuple[str, ...] = ()


class Collect:
    """Has a child process write the bundle, since reading everything takes its time.

    program: the module of that child, which is sent the home, the bundle's name, and what it is for.
    """

    action, params = COLLECT.name, CollectParams

    def __init__(self, program: str, home: Path) -> None:
        self._program, self._home = program, home

    def policy(self, params: CollectParams) -> Policy:
        """Again after a crash: it takes the place of the unfinished one."""
        return Policy(Safety.IDEMPOTENT, timeout=TIMEOUT_S + 10)

    def check(self, params: CollectParams) -> None:
        """Everything may be collected."""

    async def execute(self, effect: Effect, params: CollectParams, event: Event) -> Result:
        """Write the bundle; the result says where it lies, how large it is, and what could not be read."""
        order = {"home": str(self._home), "name": event.id, "why": params.why or effect.reason}
        program = module(self._program, env={**passed_on(), EFFECT_MARK: event.id})
        try:
            written = await ask(program, order, WrittenBundle, seconds=TIMEOUT_S)
        except WorkerFault as fault:
            raise PulseError(f"no bundle was written: its process {fault}") from None
        return Result({**written._asdict(), "missing": list(written.missing)})

    async def verify(self, effect: Effect, params: CollectParams, event: Event) -> Result | None:
        """Never asked: it is collected again."""
        return None
