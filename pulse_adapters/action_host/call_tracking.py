"""Tracks what each call does: whose code runs, told in memory that the daemon reads even during a hang, and what it

has started, so that all of it can be ended: marked programs, and jobs in threads.
"""

import asyncio
import inspect
import mmap
import os
import subprocess
from collections.abc import Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import ContextVar
from typing import Any

from pulse_adapters.workers import process_tree
from pulse_adapters.workers.descriptors import MARK
from pulse_adapters.workers.environment import HANDS_MARK
from pulse_core.model.steps import run_in_steps

CALL: "ContextVar[int]" = ContextVar("call", default=0)
"""For which call the code runs that is running."""
CALL_MARK = "PULSE_HANDS_CALL"
_PATIENCE = 0.3
_OPTIONS = inspect.signature(subprocess.Popen)


class CallTracker:
    """Tracks, once made, all that any call of this process starts through Python."""

    def __init__(self, shared: mmap.mmap) -> None:
        self._shared, self._mark = shared, os.environ[HANDS_MARK]
        self._programs: set[int] = set()
        self._jobs: dict[int, set[Future[Any]]] = {}
        self.pool = _Pool(self._jobs)
        self._mark_programs()

    def task(
        self, loop: asyncio.AbstractEventLoop, work: Any, **how: Any
    ) -> "asyncio.Task[Any]":  # a task factory
        """Create a task whose steps are marked with the call that starts it."""
        call = CALL.get()
        return asyncio.Task(self._marked(work, call) if call else work, loop=loop, **how)

    async def _marked(self, work: Coroutine[Any, Any, Any], call: int) -> Any:
        def begin() -> bytes:
            before, self._shared[:MARK] = self._shared[:MARK], call.to_bytes(MARK, "little")
            return before

        def end(before: bytes) -> None:
            self._shared[:MARK] = before

        return await run_in_steps(work, begin, end)

    async def end(self, call: int) -> None:
        """Kill the call's programs, and wait for its threads, which can't be killed."""
        if call in self._programs:
            mark = f"{CALL_MARK}={self._mark}.{call}"
            process_tree.kill_processes(process_tree.marked(mark), _PATIENCE)
        if jobs := self._jobs.get(call):
            await asyncio.wait([asyncio.wrap_future(job) for job in jobs])

    def forget(self, call: int) -> None:
        """Stop tracking an ended call."""
        self._programs.discard(call)
        self._jobs.pop(call, None)

    def _mark_programs(self) -> None:
        """Replace `Popen`, by which all of Python starts programs: they are marked even if given no environment."""

        def marks() -> dict[str, str]:
            if not (call := CALL.get()):
                return {HANDS_MARK: self._mark}
            self._programs.add(call)
            return {HANDS_MARK: self._mark, CALL_MARK: f"{self._mark}.{call}"}

        class MarkedPopen(subprocess.Popen[Any]):
            def __init__(self, *given: Any, **named: Any) -> None:
                options = _OPTIONS.bind(*given, **named).arguments
                env = options.get("env")
                super().__init__(**{**options, "env": {**(os.environ if env is None else env), **marks()}})

        subprocess.Popen = MarkedPopen  # type: ignore[misc]


class _Pool(ThreadPoolExecutor):
    """The loop's thread pool, as `asyncio.to_thread` uses it; jobs: of each call."""

    def __init__(self, jobs: "dict[int, set[Future[Any]]]") -> None:
        super().__init__(thread_name_prefix="hands")
        self._jobs = jobs

    def submit(self, work: Any, /, *given: Any, **named: Any) -> "Future[Any]":
        """Run a job in a thread, attributed to the call that submits it."""
        job = super().submit(work, *given, **named)
        if call := CALL.get():
            self._jobs.setdefault(call, set()).add(job)
        return job
