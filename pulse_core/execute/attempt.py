"""One attempt at one effect, from the call of its executor to the payload with the outcome."""

import asyncio
from dataclasses import dataclass
from random import Random
from typing import Any

from pulse_core.model.errors import PulseError
from pulse_core.model.kinds import EffectAcked, EffectAttemptFailed, EffectFailed, EffectUnknown
from pulse_core.model.moment import US_PER_SECOND
from pulse_core.model.payload import Payload
from pulse_core.ports import Executor, GivenUp, Policy, Result, Safety, Unsure
from pulse_core.projections import OpenEffect

MAX_INTERRUPTIONS = 10


@dataclass(frozen=True, slots=True)
class Attempt:
    """An effect about to be carried out: its executor, its parsed params and the policy for them."""

    effect: OpenEffect
    executor: Executor
    params: Any
    policy: Policy
    number: int

    async def act(self, dice: Random) -> Payload:
        """Execute it once; returns the payload to record. Raises only when it is cancelled."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        try:
            async with asyncio.timeout(self.policy.timeout):
                result = await self.executor.execute(self.effect.wish, self.params, self.effect.event)
        except TimeoutError:
            return self._failed(f"not done within {self.policy.timeout:g} s, and ended", dice)
        except Unsure as error:
            return EffectUnknown(why=str(error))
        except GivenUp as error:
            return EffectFailed(error=str(error))
        except asyncio.CancelledError:
            if (task := asyncio.current_task()) and task.cancelling():
                raise
            return self._failed("it cancelled itself", dice)
        except Exception as error:  # noqa: BLE001 - whatever an executor raises is the outcome of its effect
            return self._failed(describe_error(error), dice)
        return acked_payload(result, loop.time() - began)

    async def recover(self) -> Payload | None:
        """What to record of an attempt that a crash interrupted, or None if it must begin again."""
        if self.number > MAX_INTERRUPTIONS + self.policy.retries:
            return EffectFailed(error=f"interrupted {self.number} times; not tried again")
        if self.policy.safety is Safety.IDEMPOTENT:
            return None
        if self.policy.safety is Safety.AT_MOST_ONCE:
            return EffectUnknown(why="the daemon died while it was executing, and it must not run twice")
        try:
            async with asyncio.timeout(self.policy.timeout):
                result = await self.executor.verify(self.effect.wish, self.params, self.effect.event)
        except Exception as error:  # noqa: BLE001 - not being able to look is the answer
            return EffectUnknown(
                why=f"interrupted, and nobody can tell whether it happened: {describe_error(error)}"
            )
        return acked_payload(result, 0.0) if result else None

    def _failed(self, error: str, dice: Random) -> Payload:
        if self.number > self.policy.retries or self.policy.safety is Safety.AT_MOST_ONCE:
            return EffectFailed(error=error)
        pause = self.policy.pauses.jittered(self.number, dice.random())
        return EffectAttemptFailed(attempt=self.number, error=error, retry_us=round(pause * US_PER_SECOND))


def acked_payload(result: Result, seconds: float) -> EffectAcked:
    """The payload of an attempt that worked."""
    return EffectAcked(took_us=round(seconds * US_PER_SECOND), result=dict(result.data))


def describe_error(error: Exception) -> str:
    """Describe an error: its message if it is a PulseError, with its type if it is a bug."""
    return str(error) if isinstance(error, PulseError) else f"{type(error).__name__}: {error}"
