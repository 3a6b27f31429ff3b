"""How loops are run whose failure the others must outlive."""

from collections.abc import Awaitable, Callable

Work = Callable[[], Awaitable[None]]
Supervise = Callable[[str, Work], Awaitable[None]]
"""Runs the work of a loop of this name for ever."""


async def unsupervised(name: str, work: Work) -> None:
    """Run it once; whatever it raises is the caller's."""
    await work()
