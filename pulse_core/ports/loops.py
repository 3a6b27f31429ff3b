"""How work is run: loops whose failure the others must outlive, how they wait, what must end if its caller is cancelled."""

import asyncio
import math
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from contextlib import suppress
from typing import Any, Generic, TypeVar

T = TypeVar("T")

_ROUNDING = 1e-6
"""Seconds by which a clock may stand before a whole one that it has slept until."""
SLICE = 32 * 1024
"""Characters of a long text that are made before the loop turns: less than a millisecond's work."""

Work = Callable[[], Awaitable[None]]
Supervise = Callable[[str, Work], Awaitable[None]]
"""Runs the work of a loop of this name for ever."""


async def unsupervised(name: str, work: Work) -> None:
    """Run it once; whatever it raises is the caller's."""
    await work()


def is_cancelled() -> bool:
    """Whether this task was asked to end, and not only something that it waits for."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def coalesced(seconds: float) -> float:
    """The time until the last whole second of the loop's clock within so many seconds; these themselves if under one.

    Loops that look again now and then rest so long: they wake together, and what an idle daemon costs is its wakes.
    """
    now = asyncio.get_running_loop().time()
    whole = math.floor(now + seconds + _ROUNDING)
    return max(whole - now, 0.0) if seconds >= 1 else seconds


async def wait_within(event: asyncio.Event, seconds: float) -> bool:
    """Wait until the event is set, no longer than this; whether it is."""
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await event.wait()
    return event.is_set()


async def join_in_slices(pieces: Iterable[str]) -> str:
    """The pieces as one text; the loop turns whenever so much of it is made."""
    made: list[str] = []
    size = 0
    for piece in pieces:
        made.append(piece)
        size += len(piece)
        if size >= SLICE:
            size = 0
            await asyncio.sleep(0)
    return "".join(made)


class TaskSet(Generic[T]):
    """Tasks of one owner: each is forgotten when it has ended, and those that are left are cancelled at the end."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[T]] = set()

    def begin(self, work: Coroutine[Any, Any, T], name: str) -> "asyncio.Task[T]":
        """Run this in a task."""
        task = asyncio.create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def close(self) -> None:
        """Cancel them, and wait until they have ended."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


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
