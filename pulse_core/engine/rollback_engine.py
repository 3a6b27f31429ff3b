"""The executor that rolls the engine back."""

from typing import Any

from pulse_core.actions import ROLLBACK_ENGINE, RollbackParams
from pulse_core.engine.engine_controller import EngineController
from pulse_core.model.errors import PulseError
from pulse_core.model.event import Event
from pulse_core.model.kinds import Effect
from pulse_core.ports.executor import GivenUp, Policy, Result, Safety


class RollbackEngine:
    """Rolls the engine controller back; done already if the rejected commit is not in force any more."""

    action, params = ROLLBACK_ENGINE.name, RollbackParams

    def __init__(self, engine_controller: EngineController) -> None:
        self.engine_controller = engine_controller

    def policy(self, params: Any) -> Policy:
        """Verify first after a crash; a few attempts, since git's disk or the host's start may fail."""
        return Policy(Safety.VERIFY_FIRST, timeout=60.0, retries=3, backoff=1.0)

    def check(self, params: Any) -> None:
        """Refuse nothing."""

    async def execute(self, effect: Effect, params: RollbackParams, event: Event) -> Result:
        """Roll back; raises GivenUp if there is no commit to go back to."""
        if self.engine_controller.engine.commit != params.reject:
            raise GivenUp(f"{params.reject[:12]} is not in force")
        try:
            return Result(
                {"commit": await self.engine_controller.roll_back(params.to, params.reject, params.why)}
            )
        except PulseError as error:
            raise PulseError(f"the engine could not be rolled back: {error}") from error

    async def verify(self, effect: Effect, params: RollbackParams, event: Event) -> Result | None:
        """Done if another commit is in force."""
        commit = self.engine_controller.engine.commit
        return Result({"commit": commit}) if commit != params.reject else None
