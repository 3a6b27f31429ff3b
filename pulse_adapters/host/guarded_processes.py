"""Lookups for both executors of guarded processes: the settings of one by name, and its live processes."""

import asyncio
from collections.abc import Collection, Mapping

from pulse_adapters.host.spawner import Spawner
from pulse_core.model.errors import PulseError, Refused, hint
from pulse_core.ports import ProcessId, ProcessObservation, ProcessTable
from pulse_core.settings import ProcessSettings, Settings


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
