"""The guarded processes as their executors and the process table see them: their settings, and what a start left behind."""

import asyncio
from collections.abc import Collection, Mapping

from pulse_adapters.host.process_search import find_marked
from pulse_adapters.host.spawner import ProcessEnded, Spawner
from pulse_core.model.errors import PulseError, Refused, hint
from pulse_core.model.moment import US_PER_SECOND
from pulse_core.ports.host import ProcessId, ProcessObservation, ProcessTable
from pulse_core.settings.processes import ProcessSettings
from pulse_core.settings.settings import Settings

LAUNCH_S = 10.0
"""How soon, at least, a program that only starts another one is over."""

_PAUSES = (0.02, 0.0)  # a process that is just being executed shows no environment yet


def guarded_process(settings: Settings, name: str) -> ProcessSettings:
    """The guarded process of this name; raises Refused with the nearest existing name."""
    by_name = {process.name: process for process in settings.process}
    if name not in by_name:
        raise Refused(f"no process {name!r} in config.toml{hint(name, by_name)}")
    return by_name[name]


async def observe_all(
    table: ProcessTable, process: ProcessSettings, known: Mapping[str, ProcessId]
) -> ProcessObservation:
    """Observe all live processes that are this one, by a search where its settings allow one."""
    searchable = process.match or process.pid_file or process.systemd_unit or process.tcp
    believed = {} if searchable or process.name not in known else {process.name: known[process.name]}
    return (await table.look([process], believed))[process.name]


async def end_all(spawner: Spawner, found: Collection[ProcessId], soft: float) -> None:
    """End them concurrently; raises the first failure once all have been tried."""
    outcomes = await asyncio.gather(*(spawner.end(one, soft=soft) for one in found), return_exceptions=True)
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
    grace = max(process.restart.grace / US_PER_SECOND, LAUNCH_S)
    return ended if ended and ended.effect and ended.code >= 0 and ended.lived <= grace else None


async def processes_left_by(effect: str) -> tuple[ProcessId, ...]:
    """The live processes that this start left: session leaders first, then the oldest first."""
    for pause in _PAUSES:
        if left := await find_marked(effect):
            return left
        await asyncio.sleep(pause)
    return ()
