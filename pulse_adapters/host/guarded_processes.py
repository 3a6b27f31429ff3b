"""How guarded processes are found, observed and ended, for their restarts and stops; and systemctl for their units."""

import asyncio
import os
import signal
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from pulse_adapters.host.marked_processes import find_bearers
from pulse_adapters.host.outputs import end_of_output
from pulse_adapters.host.process_identity import (
    is_of_its_user,
    is_produced_by,
    not_of_user,
    without_offspring,
)
from pulse_adapters.host.spawner import Asked, ProcessEnded, Spawner, kill_rest
from pulse_core.model.errors import PulseError, Refused, hint
from pulse_core.model.moment import US_PER_SECOND
from pulse_core.model.text import signal_name
from pulse_core.ports.host import ProcessId, ProcessObservation, ProcessTable
from pulse_core.settings.processes import ProcessSettings
from pulse_core.settings.settings import Settings

SHOW_S, CHANGE_S = 3.0, 55.0
_ASK = (
    "LoadState,ActiveState,SubState,Result,MainPID,ExecMainPID,ExecMainCode,ExecMainStatus,RuntimeMaxUSec,NRestarts,BindsTo,"
    "ExecMainStartTimestampMonotonic,ActiveExitTimestampMonotonic,ExecMainExitTimestampMonotonic,"
    "ConditionResult,ConditionTimestampMonotonic,AssertResult,AssertTimestampMonotonic"
)
_BY_ITSELF = ("success", "exit-code", "signal", "core-dump")
"""Results of a unit that its main process alone has brought about, however it came to end."""


class UnitState(NamedTuple):
    """A unit's state in systemd's own words; `pid` is 0 where it has no main process.

    last: its newest main process, which may be the dead one; ended: how that ended, in words, empty while it lives;
    told_to_stop: it left the state `active` before its main process ended, since somebody wanted it down; told_to_start:
    its newest start is none of systemd's own after a failure; unmet: why systemd did not carry that start out, in words.
    """

    load: str
    active: str
    sub: str
    result: str
    pid: int
    last: int = 0
    ended: str = ""
    told_to_stop: bool = False
    told_to_start: bool = False
    unmet: str = ""

    @property
    def busy(self) -> bool:
        """Whether systemd is starting, stopping or reloading it."""
        return self.active in ("activating", "reloading", "deactivating") or self.sub == "auto-restart"

    @property
    def intended(self) -> bool:
        """Whether it is down because it was stopped on purpose, whatever its processes then ended with."""
        is_down = self.load in ("loaded", "masked") and self.active != "active"
        is_stopped = self.active == "inactive" and self.result == "success"
        return is_down and (is_stopped or self.told_to_stop)

    def is_restarted(self, pid: int) -> bool:
        """Whether somebody had it restarted while this was its main process."""
        is_up = self.active in ("active", "activating")
        return is_up and self.told_to_start and self.last not in (0, pid)

    @property
    def words(self) -> str:
        """Its state in a few words. Of an inactive unit that no other one names, systemd forgets all but its state."""
        if self.load != "loaded":
            return f"unit is {self.load}"
        state = f"{self.active} ({self.sub}), result {self.result}"
        if self.active not in ("failed", "inactive"):
            return f"unit is {state}"
        if self.told_to_stop and not self.unmet:
            return f"unit was told to stop, and is {state}"
        how = self.unmet or (f"process {self.last} {self.ended}" if self.ended else "")
        if self.active == "inactive":
            how = how or "it was stopped, ended, or was not started; systemd does not tell which"
        return f"unit is {state}{f': {how}' if how else ''}"


class Systemctl:
    """Runs `systemctl` with a timeout; its error output becomes a PulseError."""

    def __init__(self, spawner: Spawner) -> None:
        self._spawner = spawner

    async def show(self, unit: str, *, user: bool) -> UnitState:
        """The unit's present state."""
        said = await self._run(["show", "-p", _ASK, unit], user, SHOW_S)
        fields = dict(line.split("=", 1) for line in said.splitlines() if "=" in line)
        numbers = {name: int(text) for name, text in fields.items() if text.isdecimal()}
        return UnitState(
            fields.get("LoadState", "unknown"),
            fields.get("ActiveState", "unknown"),
            fields.get("SubState", ""),
            fields.get("Result", ""),
            numbers.get("MainPID", 0),
            numbers.get("ExecMainPID", 0),
            _end_of_main(fields.get("Result", ""), numbers),
            _is_told_to_stop(fields, numbers),
            numbers.get("NRestarts") == 0,
            _unmet(fields, numbers),
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


def _end_of_main(result: str, numbers: Mapping[str, int]) -> str:
    """How a unit's main process ended, in words, and why systemd ended it; empty if it lives, or nobody knows."""
    code, status = numbers.get("ExecMainCode"), numbers.get("ExecMainStatus", 0)
    if code == os.CLD_EXITED:
        how = f"exited with status {status}"
    elif code in (os.CLD_KILLED, os.CLD_DUMPED):
        how = f"was killed by {signal_name(status)}"
    else:
        return ""
    why = ": out of memory, the kernel killed a process of it" if result == "oom-kill" else ""
    return how if result in _BY_ITSELF else f"{how} (result {result}{why})"


def _unmet(fields: Mapping[str, str], numbers: Mapping[str, int]) -> str:
    """What kept systemd from carrying out a unit's newest start, in words. Both results are `no` before any start, too."""
    for name, word in (("Condition", "a condition"), ("Assert", "an assertion")):
        if fields.get(f"{name}Result") == "no" and numbers.get(f"{name}TimestampMonotonic"):
            return f"systemd did not start it, since {word} ({name}…=) was not met"
    return ""


def _is_told_to_stop(fields: Mapping[str, str], numbers: Mapping[str, int]) -> bool:
    """Whether a unit left the state `active` while its main process lived, as at a stop; at a crash it leaves it after.

    So do those that systemd itself ends: by the watchdog, for want of memory, after `RuntimeMaxSec=`, or since a unit has
    failed to which this one is bound.
    """
    if fields.get("BindsTo"):
        return False
    moments = (
        "ExecMainStartTimestampMonotonic",
        "ActiveExitTimestampMonotonic",
        "ExecMainExitTimestampMonotonic",
    )
    started, left, ended = (numbers.get(name, 0) for name in moments)
    result, is_stopping = fields.get("Result", ""), fields.get("ActiveState") == "deactivating"
    is_late = (
        result == "timeout" and fields.get("RuntimeMaxUSec") == "infinity"
    )  # it did not end when it was told to
    is_ended = left < ended or (is_stopping and ended < started)  # systemd may not have noticed its end yet
    return 0 < started < left and is_ended and (result in _BY_ITSELF or is_late)


def _bus(user: bool) -> dict[str, str]:
    """The bus address of the user's manager, which a daemon without a login session lacks."""
    runtime = f"/run/user/{os.getuid()}"
    if user and "XDG_RUNTIME_DIR" not in os.environ and os.path.isdir(runtime):
        return {"XDG_RUNTIME_DIR": runtime}
    return {}


LAUNCH_S = 2.0
"""How soon a program that only starts another one is over; who lives longer was the process itself, and can but fork."""

_SETTLE_S = 0.02
"""What is just being executed shows no environment yet, and who forks twice to be a daemon is gone a moment later."""


def guarded_process(settings: Settings, name: str) -> ProcessSettings:
    """The guarded process of this name; raises Refused with the nearest existing name."""
    by_name = {process.name: process for process in settings.process}
    if name not in by_name:
        raise Refused(f"no process {name!r} in config.toml{hint(name, by_name)}")
    return by_name[name]


async def observe_one(
    table: ProcessTable, process: ProcessSettings, known: Mapping[str, ProcessId]
) -> ProcessObservation:
    """Observe this process: the known one, or whom its settings find."""
    return (await table.look([process], known))[process.name]


async def end_all(
    spawner: Spawner,
    found: Collection[ProcessId],
    soft: float,
    alone: bool = False,
    ask: signal.Signals = signal.SIGTERM,
) -> None:
    """End them concurrently; raises the first failure once all have been tried."""
    asks = (spawner.ask_to_end(one, soft=soft, alone=alone, ask=ask) for one in found)
    outcomes = await asyncio.gather(*asks, return_exceptions=True)
    if asked := [outcome for outcome in outcomes if isinstance(outcome, Asked)]:
        outcomes += await asyncio.gather(kill_rest(asked), return_exceptions=True)
    for outcome in outcomes:
        if isinstance(outcome, PulseError):
            raise outcome
        if isinstance(outcome, BaseException):
            raise PulseError(f"cannot end it: {outcome}") from outcome


def early_exit(spawner: Spawner, process: ProcessSettings, start: ProcessId) -> ProcessEnded | None:
    """How this start of the process ended, if it exited by itself within its grace period; else None.

    Only then is what it left behind a part of the start. What a process that ran has detached from itself
    was meant to stay, and is neither this process nor in its way.
    """
    ended = spawner.ended(start)
    return ended if ended and ended.effect and ended.code >= 0 and ended.lived <= launch_s(process) else None


def launch_s(process: ProcessSettings) -> float:
    """How long after its start, in seconds, a program may still be on its way into the background."""
    return max(process.restart.grace / US_PER_SECOND, LAUNCH_S)


async def processes_left_by(process: ProcessSettings, effect: str) -> tuple[ProcessId, ...]:
    """The live processes that this start of it left, those first that `start` would produce, then who came out of no other.

    Among these, session leaders and the oldest.
    """
    await asyncio.sleep(_SETTLE_S)
    # Everybody can read the effect's id in the name of its control group, and bear it as a mark. So one that has become
    # another user's is only believed to be it if the settings name that user.
    left = [
        one for one in await find_bearers(effect=effect, anybody=True) if is_of_its_user(process, one.pid)
    ]
    heads = without_offspring(
        left
    )  # who was forked in the same hundredth of a second shows the same start time
    return tuple(sorted(left, key=lambda one: (not is_produced_by(process.start, one.pid), one not in heads)))


async def successors(process: ProcessSettings, ended: ProcessEnded) -> tuple[ProcessId, ...]:
    """Who may stand for it after a start that `early_exit` says has ended: what that left in the background.

    Of one that has lived for longer than a launcher needs, any helper may be left: then only what `start` would produce
    stands for it, or whom `pid_file`, `match` or `tcp` will find.
    """
    left = await processes_left_by(process, ended.effect) if ended.code == 0 else ()
    if ended.lived <= LAUNCH_S or process.pid_file or process.match or process.tcp:
        return left
    return tuple(one for one in left if is_produced_by(process.start, one.pid))


async def strangers_left_by(process: ProcessSettings, effect: str) -> str:
    """Why what seems to be left by this start of it can't be the process, in words; empty if nothing is."""
    left = await find_bearers(effect=effect, anybody=True)
    return next((words for one in left if (words := not_of_user(process, one.pid))), "")
