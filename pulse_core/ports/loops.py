"""How work is run: loops whose failure the others must outlive, and what must end although its caller is cancelled."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")

Work = Callable[[], Awaitable[None]]
Supervise = Callable[[str, Work], Awaitable[None]]
"""Runs the work of a loop of this name for ever."""


async def unsupervised(name: str, work: Work) -> None:
    """Run it once; whatever it raises is the caller's."""
    await work()


async def finish_despite_cancel(work: Coroutine[Any, Any, T]) -> T:
    """Finish this even if the caller is cancelled meanwhile, so that it does not outlive its caller; then pass that on."""
    task = asyncio.create_task(work)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled:
        task.cancelled() or task.exception()  # retrieved: nobody else asks
        raise cancelled
    return task.result()
