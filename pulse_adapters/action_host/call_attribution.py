"""Whose code runs at this moment, told where the daemon can read it even from a child that hangs."""

import asyncio
import mmap
from collections.abc import Coroutine, Generator
from contextvars import ContextVar
from types import TracebackType
from typing import Any

from pulse_adapters.workers.descriptors import MARK

CALL: "ContextVar[int]" = ContextVar("call", default=0)
"""For which call the code runs that is running."""


class CallMarks:
    """Puts a mark on every step of every task that a call has begun."""

    def __init__(self, shared: mmap.mmap) -> None:
        self._shared = shared

    def put(self, call: int) -> bytes:
        """Say whose code runs now; what was said before."""
        before = self._shared[:MARK]
        self._shared[:MARK] = call.to_bytes(MARK, "little")
        return before

    def back(self, before: bytes) -> None:
        """Say again what was said before."""
        self._shared[:MARK] = before

    def task(
        self, loop: asyncio.AbstractEventLoop, work: Any, **how: Any
    ) -> "asyncio.Task[Any]":  # a task factory
        """A task on the account of the call that begins it."""
        call = CALL.get()
        return asyncio.Task(MarkedCoroutine(work, call, self) if call else work, loop=loop, **how)


class MarkedCoroutine(Coroutine[Any, Any, Any]):
    """A coroutine whose steps bear a mark."""

    def __init__(self, work: Coroutine[Any, Any, Any], call: int, marks: CallMarks) -> None:
        self._work, self._call, self._marks = work, call, marks

    def send(self, value: Any, /) -> Any:
        """The next step."""
        before = self._marks.put(self._call)
        try:
            return self._work.send(value)
        finally:
            self._marks.back(before)

    def throw(self, error: Any, value: Any = None, trace: TracebackType | None = None, /) -> Any:
        """The next step, which begins with an error."""
        before = self._marks.put(self._call)
        try:
            return self._work.throw(error)
        finally:
            self._marks.back(before)

    def close(self) -> None:
        """End it where it stands."""
        self._work.close()

    def __await__(self) -> Generator[Any, Any, Any]:
        return self

    def __next__(self) -> Any:
        return self.send(None)

    def __iter__(self) -> "MarkedCoroutine":
        return self
