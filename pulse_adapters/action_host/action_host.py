"""An engine's watchers and executors in a child, as the daemon uses them: like its own."""

import asyncio
from collections.abc import Coroutine, Iterable, Mapping
from contextlib import suppress

from pulse_adapters.action_host.executor_proxy import ChildExecutor
from pulse_adapters.action_host.protocol import failure_of, names_of
from pulse_adapters.action_host.session import ENGINE, CallLost
from pulse_adapters.action_host.supervisor import ChildSupervisor
from pulse_adapters.action_host.watcher_proxy import ChildWatcher
from pulse_core.ports import EngineFault

NUDGES = 1.0
"""Seconds between two times that watchers are asked who wants to be asked."""


class ChildActionHost:
    """The watchers and executors of an engine while its revision is in force.

    faults: what was left out, and why.
    """

    def __init__(
        self,
        supervisor: ChildSupervisor | None = None,
        faults: Iterable[EngineFault] = (),
    ) -> None:
        self.watchers: tuple[ChildWatcher, ...] = ()
        self.executors: Mapping[str, ChildExecutor] = {}
        self.faults = tuple(faults)
        self.supervisor = supervisor
        self._tasks: set[asyncio.Task[None]] = set()
        self._closing: asyncio.Task[None] | None = None

    def take(self, watchers: Iterable[ChildWatcher], executors: Iterable[ChildExecutor]) -> None:
        """Set the watchers and executors."""
        self.watchers, self.executors = tuple(watchers), {one.action: one for one in executors}
        if any(watcher.nudges for watcher in self.watchers):
            self._begin(self._listen(), "listening for nudges")

    @property
    def alive(self) -> bool:
        """Whether the child runs, or none is needed."""
        return self.supervisor is None or self.supervisor.alive

    @property
    def restarts(self) -> int:
        """How often the child was replaced."""
        return self.supervisor.restarts if self.supervisor else 0

    async def _listen(self) -> None:
        """Forward the watchers' nudges, at most one a second to each watcher, for ever."""
        assert self.supervisor is not None
        known = {watcher.name: watcher for watcher in self.watchers}
        while True:
            with suppress(CallLost):
                reply = await self.supervisor.ask(ENGINE, lambda session: {"do": "nudged"})
                try:
                    for name in names_of(reply["ok"]) if failure_of(reply) is None else ():
                        if name in known:  # one that was left out may call as well
                            known[name].nudge.set()
                except ValueError as error:
                    self.supervisor.session.spoil(f"what nobody understands ({error})")
            await asyncio.sleep(NUDGES)

    def retire(self) -> None:
        """Close once the calls under way have ended, each within its time; for when another host has taken over."""
        self._begin(self._retiring(), "retire the action host")

    async def _retiring(self) -> None:
        if self.supervisor:
            await self.supervisor.idle()
        await self.close()

    def _begin(self, work: Coroutine[object, None, None], name: str) -> None:
        task = asyncio.create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def close(self) -> None:
        """Kill the child with its tree; calls under way are lost."""
        if self._closing is None:
            self._closing = asyncio.create_task(self._close(), name="close the action host")
        await asyncio.shield(self._closing)

    async def _close(self) -> None:
        tasks = tuple(self._tasks)
        for task in tasks:
            task.cancel()
        if self.supervisor:
            await self.supervisor.close()
        await asyncio.gather(*tasks, return_exceptions=True)
