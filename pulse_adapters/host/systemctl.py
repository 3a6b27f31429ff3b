"""Runs systemctl: shows, restarts or stops a unit."""

import os
from collections.abc import Sequence
from typing import NamedTuple

from pulse_adapters.host.outputs import end_of_output
from pulse_adapters.host.spawner import Spawner
from pulse_core.model.errors import PulseError

SHOW_S, CHANGE_S = 3.0, 55.0
_ASK = "LoadState,ActiveState,SubState,Result,MainPID"


class UnitState(NamedTuple):
    """A unit's state in systemd's own words; `pid` is 0 where it has no main process."""

    load: str
    active: str
    sub: str
    result: str
    pid: int

    @property
    def busy(self) -> bool:
        """Whether systemd is starting, stopping or reloading it."""
        return self.active in ("activating", "reloading", "deactivating") or self.sub == "auto-restart"

    @property
    def intended(self) -> bool:
        """Whether it is down because it was stopped on purpose."""
        return self.load == "loaded" and self.active == "inactive" and self.result == "success"

    @property
    def words(self) -> str:
        """Its state in a few words."""
        if self.load != "loaded":
            return f"unit is {self.load}"
        return f"unit is {self.active} ({self.sub}), result {self.result}"


class Systemctl:
    """Runs `systemctl` with a timeout; its error output becomes a PulseError."""

    def __init__(self, spawner: Spawner) -> None:
        self._spawner = spawner

    async def show(self, unit: str, *, user: bool) -> UnitState:
        """The unit's present state."""
        said = await self._run(["show", "-p", _ASK, unit], user, SHOW_S)
        fields = dict(line.split("=", 1) for line in said.splitlines() if "=" in line)
        pid = fields.get("MainPID", "0")
        return UnitState(
            fields.get("LoadState", "unknown"),
            fields.get("ActiveState", "unknown"),
            fields.get("SubState", ""),
            fields.get("Result", ""),
            int(pid) if pid.isdecimal() else 0,
        )

    async def change(self, verb: str, unit: str, *, user: bool) -> None:
        """Restart or stop the unit, and wait until systemd reports it active, or down."""
        await self._run([verb, unit], user, CHANGE_S)

    async def _run(self, words: Sequence[str], user: bool, timeout: float) -> str:
        argv = ["systemctl", *(["--user"] if user else []), *words]
        outcome = await self._spawner.run(argv, timeout=timeout, env=_bus(user))
        if outcome.exit != 0:
            raise PulseError(f"{' '.join(argv)!r} failed ({outcome.exit}): {end_of_output(outcome.output)}")
        return outcome.output


def _bus(user: bool) -> dict[str, str]:
    """The bus address of the user's manager, which a daemon without a login session lacks."""
    runtime = f"/run/user/{os.getuid()}"
    if user and "XDG_RUNTIME_DIR" not in os.environ and os.path.isdir(runtime):
        return {"XDG_RUNTIME_DIR": runtime}
    return {}
