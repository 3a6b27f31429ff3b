"""The executor `stop-process`: brings a guarded process down and everything that is it."""

from collections.abc import Callable, Mapping

from pydantic import BaseModel, ConfigDict, Field

from pulse_adapters.host.guarded import end_all, guarded, present
from pulse_adapters.host.proc import is_alive
from pulse_adapters.host.spawn import Spawner
from pulse_adapters.host.systemctl import Systemctl
from pulse_core.model.errors import PulseError
from pulse_core.model.event import Event
from pulse_core.model.kinds import Effect
from pulse_core.ports import Found, Policy, ProcessTable, Result, Safety
from pulse_core.settings import Settings

_SOFT_S = 10.0


class StopParams(BaseModel):
    """Which process."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    process: str = Field(description="its name in the settings")


class StopProcess:
    """SIGTERM, ten seconds of patience, then the whole tree; a unit is stopped by systemd."""

    action = "stop-process"
    params = StopParams

    def __init__(
        self,
        settings: Callable[[], Settings],
        table: ProcessTable,
        known: Callable[[], Mapping[str, Found]],
        spawner: Spawner,
    ) -> None:
        self._settings, self._table, self._known, self._spawner = settings, table, known, spawner
        self._systemctl = Systemctl(spawner)

    def policy(self, params: StopParams) -> Policy:
        """Stopping what is stopped changes nothing."""
        return Policy(Safety.IDEMPOTENT, timeout=60.0)

    def check(self, params: StopParams) -> None:
        """Refuse the name of a process that is not in the settings."""
        guarded(self._settings(), params.process)

    async def execute(self, effect: Effect, params: StopParams, event: Event) -> Result:
        """End all that is found of it; the result names who was ended."""
        process = guarded(self._settings(), params.process)
        if process.systemd_unit:
            await self._systemctl.stop(process.systemd_unit, user=process.systemd_user, timeout=55.0)
            return Result({"unit": process.systemd_unit})
        sight = await present(self._table, process, self._known())
        believed = self._known().get(params.process)
        left = {*sight.found, *({believed} if believed and is_alive(believed) else ())}
        if sight.answering and not left:
            raise PulseError(
                f"{sight.detail}, but who listens there is not visible to the user Pulse runs as"
            )
        await end_all(self._spawner, left, _SOFT_S)
        return Result({"ended": sorted(one.pid for one in left)})

    async def verify(self, effect: Effect, params: StopParams, event: Event) -> Result | None:
        """Never asked: it is done again."""
        return None
