"""Processes that a start leaves behind: a program that detaches itself, or the remains of a failed start."""

import asyncio

from pulse_adapters.host.process_search import find_marked
from pulse_adapters.host.spawner import ProcessEnded, Spawner
from pulse_adapters.workers.proc import read_stat
from pulse_core.model.moment import US_PER_SECOND
from pulse_core.ports import ProcessId
from pulse_core.settings import ProcessSettings

LAUNCH_S = 10.0
"""How soon, at least, a program that only starts another one is over."""

_PAUSES = (0.02, 0.0)  # a process that is just being executed shows no environment yet


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
            return tuple(sorted(left, key=lambda one: (not _is_session_leader(one), one.started)))
        await asyncio.sleep(pause)
    return ()


def _is_session_leader(found: ProcessId) -> bool:
    seen = read_stat(found.pid)
    return seen is not None and seen.session == found.pid
