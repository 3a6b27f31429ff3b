"""Runs a program of this package in a child and returns its answer."""

from collections.abc import Mapping

from pulse_adapters.workers import conversation
from pulse_adapters.workers.environment import EFFECT_MARK, inherited_environment
from pulse_adapters.workers.framing import WorkerFault
from pulse_adapters.workers.worker import module_program
from pulse_core.model.errors import PulseError
from pulse_core.model.json_types import Json


async def ask(program: str, order: Mapping[str, Json], *, seconds: float, effect: str) -> dict[str, Json]:
    """Run `pulse_adapters.files.PROGRAM` and return its answer; raises PulseError with its message if it fails.

    Its own deadline is 80 % of `seconds`, so that it ends before it is killed.
    """
    worker = module_program(
        f"pulse_adapters.files.{program}", env={**inherited_environment(), EFFECT_MARK: effect}
    )
    order = {**order, "seconds": seconds * 0.8, "effect": effect}
    try:
        return await conversation.ask(worker, order, dict, seconds=seconds)
    except WorkerFault as fault:
        raise PulseError(f"{program} {fault}") from None
