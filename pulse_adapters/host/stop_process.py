"""The executor `stop-process`: stops a guarded process, or one that uses too much memory, with its whole tree."""

from collections.abc import Callable, Mapping

from pulse_adapters.host.guarded_processes import end_all, guarded_process, observe_all
from pulse_adapters.host.memory_consumers import MemoryConsumers
from pulse_adapters.host.spawner import Spawner
from pulse_adapters.host.systemctl import Systemctl
from pulse_adapters.workers.proc import is_alive
from pulse_core.actions import STOP_PROCESS, Consumer, StopParams
from pulse_core.model.errors import PulseError, Refused
from pulse_core.model.event import Event
from pulse_core.model.kinds import Effect
from pulse_core.ports.executor import Executor, Policy, Result, Safety
from pulse_core.ports.host import ProcessId, ProcessTable
from pulse_core.settings.settings import Settings

_SOFT_S = 10.0


class StopProcess(Executor):
    """SIGTERM, a wait of ten seconds, then SIGKILL to the whole tree; a unit is stopped by systemd."""

    action, params = STOP_PROCESS.name, StopParams

    def __init__(
        self,
        settings: Callable[[], Settings],
        table: ProcessTable,
        known: Callable[[], Mapping[str, ProcessId]],
        spawner: Spawner,
    ) -> None:
        self._settings, self._table, self._known, self._spawner = settings, table, known, spawner
        self._systemctl = Systemctl(spawner)
        self._consumers = MemoryConsumers(settings, known, lambda: spawner.running)

    def policy(self, params: StopParams) -> Policy:
        """Idempotent: stopping a stopped process changes nothing."""
        return Policy(Safety.IDEMPOTENT, timeout=60.0)

    def check(self, params: StopParams) -> None:
        """Refuse the name of a process, or a pattern, that is not in the settings."""
        if params.consumer is None:
            guarded_process(self._settings(), params.process or "")
        elif (pattern := params.consumer.pattern) not in self._settings().resources.stop:
            raise Refused(f"no {pattern!r} in `stop` under [resources] in config.toml; add it to allow this")

    async def execute(self, effect: Effect, params: StopParams, event: Event) -> Result:
        """End all processes that are found of it; the result names them."""
        if params.consumer is not None:
            return await self._stop(params.consumer)
        process = guarded_process(self._settings(), params.process or "")
        if process.systemd_unit:
            await self._systemctl.change("stop", process.systemd_unit, user=process.systemd_user)
            return Result({"unit": process.systemd_unit})
        sight = await observe_all(self._table, process, self._known())
        believed = self._known().get(process.name)
        left = {*sight.found, *({believed} if believed and is_alive(believed) else ())}
        if sight.answering and not left:
            raise PulseError(
                f"{sight.detail}, but who listens there is not visible to the user Pulse runs as"
            )
        if process.match and sight.busy and not left:
            raise PulseError(f"nothing was ended: {sight.detail}")
        await end_all(self._spawner, left, _SOFT_S)
        return Result({"ended": sorted(one.pid for one in left)})

    async def _stop(self, consumer: Consumer) -> Result:
        """End this exact process, if it may still be stopped; its pid may have been reused by now."""
        found = ProcessId(consumer.pid, consumer.started)
        if not is_alive(found):
            return Result({"ended": [], "already": True})
        if not await self._consumers.is_one(found, consumer.pattern):
            raise PulseError(
                f"process {found.pid} was let live: it is guarded, or keeps what is, or does not match any more"
            )
        await end_all(self._spawner, [found], _SOFT_S)
        return Result({"ended": [found.pid]})
