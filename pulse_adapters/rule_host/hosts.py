"""Starts rule hosts: a child loads a revision, receives the history, and is ready for the next tick.

What takes long to import is imported once a child has begun, which imports at the same time.
"""

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pulse_adapters.rule_host.process import PLUGIN, RuleChild
from pulse_adapters.sandbox.scratch_folder import Scratch
from pulse_adapters.workers.framing import WorkerFault
from pulse_adapters.workers.host_groups import RULES, MakeGroup, no_host_group
from pulse_adapters.workers.host_process import with_way_out
from pulse_adapters.workers.run_as import RunAs
from pulse_adapters.workers.source_locations import Places, roots_of_plugins
from pulse_core.model.event import Event
from pulse_core.ports.engine import CannotLoad, History, Revision, UserProjectionState

if TYPE_CHECKING:
    from pulse_adapters.rule_host.host import ChildRuleHost
    from pulse_adapters.rule_host.replies import ConfinedReply, LoadReply
    from pulse_core.projections.state import Snapshot

LOAD = 10.0
"""Seconds in which an engine must be loaded, and a batch of history folded."""
WHOLE, ROW = 60.0, 0.001
"""Seconds in which all that is done, and those more that it has for each row of the log: a rollback waits for it."""
_MIB = 1024 * 1024


@dataclass(slots=True)
class ChildHosts:
    """`StandbyRuleHosts` as child processes.

    scratch: the parent of each child's own writable folder (the system's temporary folder if None); run_as: called at
    each load for the user that the child then takes on (raises CannotLoad if a required user can't be had); plugins: entry
    points as `module:attribute` by name; group: makes the control group that each lives in; dev: report non-deterministic
    calls while rules run, which makes them slower.
    """

    scratch: str | None = None
    run_as: Callable[[], RunAs] = RunAs
    plugins: Mapping[str, str] = field(default_factory=dict)
    group: MakeGroup = no_host_group
    dev: bool = False
    load: float = LOAD
    whole: float = WHOLE
    _spare: RuleChild | None = field(default=None, init=False)

    async def start(
        self, revision: Revision, prev: "Snapshot", history: History, kept: Mapping[str, UserProjectionState]
    ) -> "ChildRuleHost":
        """Start a host that has loaded the revision and stands at `prev`. Raises CannotLoad."""
        if self._spare and not self._spare.alive:
            await self.close()
        child, self._spare = self._spare or self._child(), None
        from pulse_adapters.rule_host.host import ChildRuleHost

        whole = self.whole + prev.state.seq * ROW
        try:
            async with asyncio.timeout(whole) as limit:
                run_as = await asyncio.to_thread(self.run_as)
                child.group = await asyncio.to_thread(self.group, RULES, prev.settings.engine.memory)
                root = await run_as.path_of(revision)
                confined = await self._confine(child, root, run_as.user, prev)
                reply = await self._load(child)
                names = reply.names(self.plugins)
                await self._rebuild(child, reply, prev.state.seq, history, kept)
                return ChildRuleHost(child, reply.loaded(confined, child.group.parts), names, prev)
        except BaseException as error:
            await child.shut_down()
            if isinstance(error, TimeoutError) and limit.expired():
                raise CannotLoad(f"it was not loaded, and the log folded, within {whole:,.0f} s") from error
            if isinstance(error, WorkerFault):
                raise CannotLoad(f"{child.title} said {error}") from error
            raise

    def warm(self) -> None:
        """Start a child that stands by for the next start, which takes longer without one."""
        if self._spare is None:
            with suppress(CannotLoad):
                self._spare = self._child()

    async def close(self) -> None:
        """End the child that stands by."""
        spare, self._spare = self._spare, None
        if spare:
            await spare.shut_down()

    def _child(self) -> RuleChild:
        """Start a child, which imports everything but the authors' code. Raises CannotLoad."""
        try:
            scratch = Scratch(self.scratch)
            try:
                return RuleChild(self.plugins, scratch)
            except OSError:
                scratch.remove()
                raise
        except OSError as error:
            raise CannotLoad(f"no rule host can be started: {error}") from error

    async def _confine(
        self, child: RuleChild, root: str, user: tuple[int, int] | None, prev: "Snapshot"
    ) -> "ConfinedReply":
        from pulse_adapters.rule_host.host import full_snapshot
        from pulse_adapters.rule_host.replies import ConfinedReply

        child.places = Places({root: "", **roots_of_plugins(self.plugins)})
        message = {
            "root": root,
            "parent": os.getpid(),
            "group": child.group.path,
            "scratch": child.scratch.path,
            "user": user,
            "memory": prev.settings.engine.memory * _MIB,
            "plugins": self.plugins,
            "dev": self.dev,
            "prev": await full_snapshot(prev),
        }
        reply = await child.ask(message, ConfinedReply, self.load)
        if reply is None:
            raise CannotLoad(with_way_out((await child.reason_of_end()).message))
        return reply

    async def _load(self, child: RuleChild) -> "LoadReply":
        from pulse_adapters.rule_host.replies import LoadReply

        reply = await child.ask({}, LoadReply, self.load)
        if reply is None:
            fault = await child.reason_of_end()
            words = fault.message
            if fault.whose.startswith(PLUGIN):
                plugin = fault.whose.removeprefix(PLUGIN)
                words += f", while it imported the plugin {plugin}; see: upulse plugins"
            raise CannotLoad(with_way_out(words))
        if reply.error is not None:
            raise CannotLoad(reply.error)
        child.units = tuple(reply.units())
        return reply

    async def _rebuild(
        self,
        child: RuleChild,
        reply: "LoadReply",
        row: int,
        history: History,
        kept: Mapping[str, UserProjectionState],
    ) -> None:
        """Bring the authors' projections up to this row: from a kept value that fits, else from the log's beginning."""
        begins = []
        for name, (version, _) in reply.projections.items():
            one = kept.get(name)
            if one and one.version == version and one.seq <= row:
                child.send({"do": "resume", "name": name, "seq": one.seq, "state": one.state})
                begins.append(one.seq)
            else:
                begins.append(0)
        if not begins:
            return
        of_each = [kinds for _, kinds in reply.projections.values()]
        wanted = None if None in of_each else frozenset[str]().union(*filter(None, of_each))
        if (first := min(begins)) < row:
            async for events in history(first):
                due = [event for event in events if event.seq <= row]
                batch = [event for event in due if wanted is None or event.kind in wanted]
                if batch:
                    await self._fold(child, batch, batch[-1].seq)
        await self._fold(child, (), row)

    async def _fold(self, child: RuleChild, events: Sequence[Event], upto: int) -> None:
        from pulse_adapters.rule_host.replies import HistoryReply

        message = {"do": "history", "events": events, "upto": upto}
        if await child.ask(message, HistoryReply, self.load) is None:
            fault = await child.reason_of_end()
            raise CannotLoad(f"{fault.whose}: {fault.message}")
