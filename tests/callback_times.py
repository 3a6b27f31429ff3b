"""Measures each callback of the event loop: what holds it while an engine does its worst."""

import asyncio
import gc
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

LONGEST_MS = 100.0
"""What no callback takes in `check`, of CPU: many times what is promised, so that no machine is too slow for it."""


@dataclass
class CallbackTimes:
    """The longest run of each callback by its name: milliseconds of this thread's CPU, so that a busy machine adds none."""

    longest: dict[str, float] = field(default_factory=dict)
    count: int = 0

    @property
    def worst(self) -> tuple[float, str]:
        """The milliseconds of the longest one, and its name."""
        return max(((took, name) for name, took in self.longest.items()), default=(0.0, ""))

    def assert_short(self) -> None:
        """None of them has held the loop."""
        took, name = self.worst
        assert took < LONGEST_MS, f"{name} took {took:.1f} ms"

    def note(self, handle: Any, took: float) -> None:
        """Count a run."""
        self.count += 1
        name = callback_name(handle._callback)
        self.longest[name] = max(self.longest.get(name, 0.0), took)


def callback_name(callback: Callable[..., object]) -> str:
    """The task and its coroutine, or the function."""
    owner = getattr(callback, "__self__", None)
    if isinstance(owner, asyncio.Task):
        coroutine: Any = owner.get_coro()
        return f"{owner.get_name()}: {getattr(coroutine, '__qualname__', coroutine)}"
    return getattr(callback, "__qualname__", repr(callback))


@contextmanager
def callback_times() -> Iterator[CallbackTimes]:
    """Measure every callback of this thread's loops while inside.

    The garbage collector passes over what was there before, as in a daemon: what tests have imported is no engine's doing.
    It goes on to do so, as it has since the tests were collected.
    """
    found, run = CallbackTimes(), asyncio.events.Handle._run

    def measured(handle: Any) -> None:
        began = time.thread_time()
        try:
            run(handle)
        finally:
            found.note(handle, (time.thread_time() - began) * 1000)

    gc.freeze()
    asyncio.events.Handle._run = measured  # type: ignore[method-assign, assignment]  # as it is called
    try:
        yield found
    finally:
        asyncio.events.Handle._run = run  # type: ignore[method-assign]
