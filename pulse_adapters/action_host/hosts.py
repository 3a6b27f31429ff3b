"""Starts action hosts: a child loads a revision, and describes its watchers and executors."""

import asyncio
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, nullcontext, suppress
from dataclasses import dataclass, field

from pulse_adapters.action_host.process import ActionChild, CallLost
from pulse_adapters.action_host.proxies import ChildExecutor, ChildWatcher
from pulse_adapters.action_host.replies import (
    ActionLoadReply,
    ExecutorDescription,
    LoadedActions,
    Owners,
    WatcherDescription,
)
from pulse_adapters.action_host.supervisor import ChildSupervisor, Failed
from pulse_adapters.workers.host_groups import ACTIONS, MakeGroup, no_host_group
from pulse_adapters.workers.host_process import ENGINE, with_way_out
from pulse_adapters.workers.run_as import RunAs
from pulse_adapters.workers.source_locations import Places, roots_of_plugins, with_place
from pulse_core.model.errors import PulseError
from pulse_core.model.vitals import Window
from pulse_core.ports.clock import Clock
from pulse_core.ports.engine import CannotLoad, EngineFault, ReservedNames, Revision

LOAD = 10.0
"""Seconds in which an engine must be loaded."""
NUDGES = 1.0
"""Seconds between two times that watchers are asked who wants to be asked."""
_MIB = 1024 * 1024


class ChildActionHost:
    """The watchers and executors of an engine while its revision is in force, as the daemon uses them: like its own.

    supervisor: None if no child is needed; faults: what was left out, and why.
    """

    def __init__(
        self,
        supervisor: ChildSupervisor | None = None,
        watchers: Iterable[ChildWatcher] = (),
        executors: Iterable[ChildExecutor] = (),
        faults: Iterable[EngineFault] = (),
    ) -> None:
        self.supervisor = supervisor
        self.watchers, self.executors = tuple(watchers), {one.action: one for one in executors}
        self.faults = tuple(faults)
        self._tasks: set[asyncio.Task[None]] = set()
        self._closing: asyncio.Task[None] | None = None
        if supervisor and any(watcher.nudges for watcher in self.watchers):
            self._tasks.add(asyncio.create_task(self._listen(supervisor), name="listening for nudges"))

    async def _listen(self, supervisor: ChildSupervisor) -> None:
        """Forward the watchers' nudges, at most one a second to each watcher, for ever."""
        known = {watcher.name: watcher for watcher in self.watchers}
        while True:
            with suppress(CallLost, PulseError):
                reply = await supervisor.call(ENGINE, lambda child: {"do": "nudged"})
                for name in known.keys() & reply.names:  # one that was left out may call as well
                    known[name].nudge.set()
            await asyncio.sleep(NUDGES)

    def retire(self, seconds: float) -> asyncio.Future[None]:
        """Close once the calls under way have ended, or when these seconds are over; another host has taken over."""
        retirement = asyncio.create_task(self._retire(seconds), name="retire the action host")
        self._tasks.add(retirement)
        return retirement

    async def _retire(self, seconds: float) -> None:
        if self.supervisor:
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self.supervisor.idle()
        if task := asyncio.current_task():
            self._tasks.discard(task)  # closing would cancel it, and it is done only once that is
        await self.close()

    def frozen(self) -> AbstractAsyncContextManager[None]:
        return self.supervisor.frozen() if self.supervisor else nullcontext()

    async def close(self) -> None:
        """Kill the child with its tree; calls under way are lost."""
        if self._closing is None:
            self._closing = asyncio.create_task(self._close(), name="close the action host")
        await asyncio.shield(self._closing)

    async def _close(self) -> None:
        for task in self._tasks:
            task.cancel()
        if self.supervisor:
            await self.supervisor.close()
        await asyncio.gather(*self._tasks, return_exceptions=True)


@dataclass(frozen=True, slots=True)
class ChildActionHosts:
    """Starts a child for each revision that has watchers or executors.

    windows: the current ones of all watchers; run_as: called at each start for the user that the child takes on (raises
    CannotLoad if a required user can't be had); plugins: entry points as `module:attribute` by name, whose watchers
    and executors stand before the engine's; group: makes the control group that each child lives in; load: seconds.
    """

    clock: Clock
    windows: Callable[[], Mapping[str, Window]]
    run_as: Callable[[], RunAs] = RunAs
    plugins: Mapping[str, str] = field(default_factory=dict)
    group: MakeGroup = no_host_group
    load: float = LOAD

    async def start(
        self, revision: Revision, memory: int, taken: ReservedNames, failed: Failed
    ) -> ChildActionHost:
        """Start a host for the revision; memory: MiB beyond what the child starts with. Raises CannotLoad.

        failed: called with each fault that no caller receives.
        """
        run_as = await asyncio.to_thread(self.run_as)
        own = Owners(
            {f"watcher:{name}" for name in taken.names} | {f"executor:{name}" for name in taken.actions},
            self.plugins,
        )
        child, found = await self._start_child(revision, memory, run_as, own)
        if not (found.watchers or found.executors):
            await _end(child)
            return ChildActionHost(faults=found.faults)
        clashes = tuple(_clashes(found, taken))
        left_out = {fault.whose for fault in clashes}
        faults = (*found.faults, *(own.booked(*fault) for fault in clashes))

        async def again() -> ActionChild:
            child, now = await self._start_child(revision, memory, run_as, own)
            if now != found:
                await _end(child)
                raise CannotLoad("the same revision holds something else than before")
            return child

        supervisor = ChildSupervisor(child, again, failed)
        return ChildActionHost(
            supervisor,
            (
                ChildWatcher(one, supervisor, self.clock, self.windows, failed)
                for one in found.watchers
                if one.whose not in left_out
            ),
            (ChildExecutor(one, supervisor, failed) for one in found.executors if one.whose not in left_out),
            faults,
        )

    async def _start_child(
        self, revision: Revision, memory: int, run_as: RunAs, own: Owners
    ) -> tuple[ActionChild, LoadedActions]:
        root = await run_as.path_of(revision)
        group = await asyncio.to_thread(self.group, ACTIONS, memory)
        try:
            child = ActionChild(self.plugins, run_as.user, group)
        except OSError as error:
            await group.end()
            raise CannotLoad(f"no action host can be started: {error}") from error
        child.places = Places({root: "", **roots_of_plugins(self.plugins)})
        message = {
            "root": root,
            "group": group.path,
            "memory": memory * _MIB,
            "user": run_as.user,
            "parent": os.getpid(),
            "plugins": self.plugins,
        }
        try:
            reply = await child.ask(message, ActionLoadReply, ENGINE, self.load)
            if reply.error is not None:
                raise CannotLoad(reply.error)
            found = reply.loaded(own)
            child.defined = {one.whose: one.place for one in found.watchers}
            child.defined |= {one.whose: one.place for one in found.executors}
            return child, found
        except CallLost as lost:
            await _end(child)
            raise CannotLoad(with_way_out(lost.fault.message)) from None
        except BaseException:
            await _end(child)
            raise


async def _end(child: ActionChild) -> None:
    child.kill()
    await child.clear()


def _clashes(found: LoadedActions, taken: ReservedNames) -> Iterator[EngineFault]:
    """Faults for watchers and executors whose name is taken, by the daemon's own or by one listed before."""
    known = {("name", one) for one in taken.names} | {("key", one) for one in taken.keys}
    known |= {("action", one) for one in taken.actions}
    items: tuple[WatcherDescription | ExecutorDescription, ...] = (*found.watchers, *found.executors)
    for one in items:
        kind = one.whose.partition(":")[0]
        for what in ("name", "key") if isinstance(one, WatcherDescription) else ("action",):
            if (what, word := getattr(one, what)) in known:
                words = f"left out: another {kind} has the {what} {word!r}; take another one, as 'my-{word}'"
                yield EngineFault(one.whose, with_place(words, one.place))
            known.add((what, word))
