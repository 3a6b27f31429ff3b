"""Having a program of this room run in a child, and its answer."""

from collections.abc import Mapping

from pulse_adapters.workers import conversation
from pulse_adapters.workers.environment import EFFECT_MARK, inherited_environment
from pulse_adapters.workers.framing import WorkerFault
from pulse_adapters.workers.worker import module_program
from pulse_core.model.errors import PulseError
from pulse_core.model.json_types import Json


async def ask(program: str, order: Mapping[str, Json], *, seconds: float, effect: str) -> dict[str, Json]:
    """What the program `pulse_adapters.files.PROGRAM` answers; raises PulseError with its own words if it can't.

    It is told to end by itself in good time before it would be ended.
    """
    worker = module_program(
        f"pulse_adapters.files.{program}", env={**inherited_environment(), EFFECT_MARK: effect}
    )
    order = {**order, "seconds": seconds * 0.8, "effect": effect}
    try:
        return await conversation.ask(worker, order, dict, seconds=seconds)
    except WorkerFault as fault:
        raise PulseError(f"{program} {fault}") from None
