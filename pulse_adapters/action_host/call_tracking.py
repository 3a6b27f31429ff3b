"""What each call has begun: programs bear its mark, jobs in threads are counted, so that all of it can be ended."""

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
    """Keeps account, from its making on, of all that any call of this process begins through Python."""

    def __init__(self, mark: str) -> None:
        """mark: `NAME=VALUE` of this process, which programs bear even if they are given no environment."""
        self._name, _, self._value = mark.partition("=")
        self._programs: set[int] = set()
        self._jobs: dict[int, set[Future[Any]]] = {}
        self.pool = _Pool(self)
        self._bear_marks()

    def counts(self, job: "Future[Any]") -> None:
        """Put a job on the account of the call that begins it."""
        if call := CALL.get():
            self._jobs.setdefault(call, set()).add(job)

    async def end(self, call: int) -> None:
        """End its programs, and wait for its threads, which nobody can end."""
        if call in self._programs:
            mark = f"{CALL_MARK}={self._value}.{call}"
            process_tree.end(process_tree.marked(mark), _PATIENCE)
        if jobs := self._jobs.get(call):
            await asyncio.wait([asyncio.wrap_future(job) for job in jobs])

    def forget(self, call: int) -> None:
        """Its account is closed."""
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
    """The loop's threads, as `asyncio.to_thread` uses them."""

    def __init__(self, begun: CallResources) -> None:
        super().__init__(thread_name_prefix="hands")
        self._begun = begun

    def submit(self, work: Any, /, *given: Any, **named: Any) -> "Future[Any]":
        """Have it done in a thread, on the account of the call that wants it."""
        job = super().submit(work, *given, **named)
        self._begun.counts(job)
        return job
