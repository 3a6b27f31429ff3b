"""Tracks what each call has started, so that all of it can be ended: marked programs, and jobs in threads."""

import asyncio
import os
import subprocess
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from pulse_adapters.action_host.call_attribution import CALL
from pulse_adapters.workers import process_tree

CALL_MARK = "PULSE_HANDS_CALL"
_PATIENCE = 0.3
_ENV = 6
"""The place of `env` among what `Popen` gives to the method that starts a program."""


class CallResources:
    """Tracks, once made, all that any call of this process starts through Python."""

    def __init__(self, mark: str) -> None:
        """mark: `NAME=VALUE` of this process, added to programs even if they are given no environment."""
        self._name, _, self._value = mark.partition("=")
        self._programs: set[int] = set()
        self._jobs: dict[int, set[Future[Any]]] = {}
        self.pool = _Pool(self)
        self._bear_marks()

    def counts(self, job: "Future[Any]") -> None:
        """Attribute a job to the call that starts it."""
        if call := CALL.get():
            self._jobs.setdefault(call, set()).add(job)

    async def end(self, call: int) -> None:
        """Kill the call's programs, and wait for its threads, which can't be killed."""
        if call in self._programs:
            mark = f"{CALL_MARK}={self._value}.{call}"
            process_tree.kill_processes(process_tree.marked(mark), _PATIENCE)
        if jobs := self._jobs.get(call):
            await asyncio.wait([asyncio.wrap_future(job) for job in jobs])

    def forget(self, call: int) -> None:
        """Stop tracking an ended call."""
        self._programs.discard(call)
        self._jobs.pop(call, None)

    def _bear_marks(self) -> None:
        start = subprocess.Popen._execute_child  # type: ignore[attr-defined]  # the one place that all ways go through

        def marking(popen: Any, *given: Any) -> Any:
            env = os.environ if given[_ENV] is None else given[_ENV]
            more = {self._name: self._value}
            if call := CALL.get():
                self._programs.add(call)
                more[CALL_MARK] = f"{self._value}.{call}"
            return start(popen, *given[:_ENV], {**env, **more}, *given[_ENV + 1 :])

        subprocess.Popen._execute_child = marking  # type: ignore[attr-defined]  # as above


class _Pool(ThreadPoolExecutor):
    """The loop's thread pool, as `asyncio.to_thread` uses it."""

    def __init__(self, begun: CallResources) -> None:
        super().__init__(thread_name_prefix="hands")
        self._begun = begun

    def submit(self, work: Any, /, *given: Any, **named: Any) -> "Future[Any]":
        """Run a job in a thread, attributed to the call that submits it."""
        job = super().submit(work, *given, **named)
        self._begun.counts(job)
        return job
