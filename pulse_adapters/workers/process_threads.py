"""Threads for what looks at processes, and ends them, and for what starts them.

It asks no disk. Where one hangs, all threads of asyncio may wait for that, and no process that died could be started, since
what was left of it has to be ended first.
"""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import ParamSpec, TypeVar

from pulse_adapters.workers.threads import Pool

P = ParamSpec("P")
T = TypeVar("T")
PROCESS_THREADS = Pool(6, "processes")
START_THREADS = Pool(16, "starts")
"""Each is held up until the new process is executed, for which that needs a processor: 32 ms beside thirty busy sessions on
two processors. The loop would wait for one after the other of many that died at once."""


async def in_process_thread(work: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """Do this in one of them. Raises BlockingIOError if the system gives none."""
    return await asyncio.get_running_loop().run_in_executor(PROCESS_THREADS, partial(work, *args, **kwargs))


async def in_start_thread(work: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """Do this in one of those for starts. Raises BlockingIOError if the system gives none."""
    return await asyncio.get_running_loop().run_in_executor(START_THREADS, partial(work, *args, **kwargs))
