"""Records which call's code runs, in shared memory that the daemon can read even while the child hangs."""

import asyncio
import mmap
from collections.abc import Coroutine, Generator
from contextvars import ContextVar
from types import TracebackType
from typing import Any

from pulse_adapters.workers.descriptors import MARK

CALL: "ContextVar[int]" = ContextVar("call", default=0)
"""For which call the code runs that is running."""


class CallMarker:
    """Marks every step of every task that a call has started."""

    def __init__(self, shared: mmap.mmap) -> None:
        self._shared = shared

    def put(self, call: int) -> bytes:
        """Mark this call as running; returns the mark before."""
        before = self._shared[:MARK]
        self._shared[:MARK] = call.to_bytes(MARK, "little")
        return before

    def back(self, before: bytes) -> None:
        """Restore the mark that `put` returned."""
        self._shared[:MARK] = before

    def task(
        self, loop: asyncio.AbstractEventLoop, work: Any, **how: Any
    ) -> "asyncio.Task[Any]":  # a task factory
        """Create a task that is attributed to the call that starts it."""
        call = CALL.get()
        return asyncio.Task(MarkedCoroutine(work, call, self) if call else work, loop=loop, **how)


class MarkedCoroutine(Coroutine[Any, Any, Any]):
    """A coroutine whose steps are marked with their call."""

    def __init__(self, work: Coroutine[Any, Any, Any], call: int, marks: CallMarker) -> None:
        self._work, self._call, self._marks = work, call, marks

    def send(self, value: Any, /) -> Any:
        """Run the next step."""
        before = self._marks.put(self._call)
        try:
            return self._work.send(value)
        finally:
            self._marks.back(before)

    def throw(self, error: Any, value: Any = None, trace: TracebackType | None = None, /) -> Any:
        """Run the next step, raising this error in it."""
        before = self._marks.put(self._call)
        try:
            return self._work.throw(error)
        finally:
            self._marks.back(before)

    def close(self) -> None:
        """Close the wrapped coroutine."""
        self._work.close()

    def __await__(self) -> Generator[Any, Any, Any]:
        return self

    def __next__(self) -> Any:
        return self.send(None)

    def __iter__(self) -> "MarkedCoroutine":
        return self
