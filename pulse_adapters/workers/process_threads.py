"""Threads for what looks at processes, and ends them.

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


async def in_process_thread(work: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """Do this in one of them. Raises BlockingIOError if the system gives none."""
    return await asyncio.get_running_loop().run_in_executor(PROCESS_THREADS, partial(work, *args, **kwargs))
