"""The looks at guarded processes that are under way, side by side: a death waits for no look at others.

A look at all may take long, since it searches the machine for those that are down. Who dies meanwhile is looked at alone,
and told first. Of each process the newest look counts: an older one saw it before it died, and would tell a state that is
over.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pulse_core.ports.host import ProcessId, ProcessObservation, ProcessTable
from pulse_core.projections.processes import ProcessHistory
from pulse_core.settings.processes import ProcessSettings
from pulse_core.watch.evaluate_process import recorded_process


@dataclass(frozen=True, eq=False)
class ProcessLook:
    """A look at these processes, and what was known when it began.

    histories: by name; before: who stood for each at the look before; proofs: the deaths since then that were seen
    through a pidfd; is_whole: whether it is one at all processes; seen: what it saw, by name.
    """

    processes: Sequence[ProcessSettings]
    histories: Mapping[str, ProcessHistory]
    before: Mapping[str, ProcessId]
    proofs: frozenset[ProcessId]
    is_whole: bool
    seen: asyncio.Future[Mapping[str, ProcessObservation]]


@dataclass(eq=False)
class ProcessLooks:
    """Begins looks, and returns them when they are over. timeout: the most seconds that one takes."""

    table: ProcessTable
    timeout: float
    _under_way: list[ProcessLook] = field(default_factory=list, init=False)
    _newest: dict[str, ProcessLook] = field(default_factory=dict, init=False)
    _stood: dict[str, ProcessId] = field(default_factory=dict, init=False)
    _proofs: set[ProcessId] = field(default_factory=set, init=False)
    _news: asyncio.Event = field(default_factory=asyncio.Event, init=False)

    @property
    def dead(self) -> frozenset[ProcessId]:
        """Those whose death was seen, and is not told by a look yet."""
        return frozenset(self._proofs).union(*(look.proofs for look in self._under_way))

    def add_proof(self, dead: ProcessId) -> None:
        """Remember that this death was seen through a pidfd."""
        self._proofs.add(dead)
        self._news.set()

    def begin(
        self,
        processes: Sequence[ProcessSettings],
        histories: Mapping[str, ProcessHistory],
        known: Mapping[str, ProcessId],
    ) -> None:
        """Look at those whose death was seen; if there are none, and no look is under way, at all of these.

        known: who is known to stand for each.
        """
        dead = [one for one in processes if self._proofs_of(one.name, histories)]
        if not dead and self._under_way:
            return
        if dead:
            proofs = frozenset().union(*(self._proofs_of(one.name, histories) for one in dead))
        else:
            proofs = frozenset(self._proofs)
        seen = asyncio.create_task(self._observe(dead or processes, known), name="look at processes")
        seen.add_done_callback(self._on_done)
        look = ProcessLook(dead or processes, histories, dict(self._stood), proofs, not dead, seen)
        self._proofs -= proofs
        self._under_way.append(look)
        of_others = {one.name for one in processes}.difference(one.name for one in look.processes)
        self._newest = {name: self._newest[name] for name in of_others & self._newest.keys()}
        self._newest |= {one.name: look for one in look.processes}
        stood = self._stood
        self._stood = {name: stood[name] for name in of_others & stood.keys()}
        self._stood |= {one.name: known[one.name] for one in look.processes if one.name in known}

    def _proofs_of(self, name: str, histories: Mapping[str, ProcessHistory]) -> frozenset[ProcessId]:
        """The deaths that were seen of who stood for this name, as it is recorded or as it was at the look before."""
        lasts = (recorded_process(histories[name]), self._stood.get(name))
        return frozenset(one for one in lasts if one in self._proofs)

    async def _observe(
        self, processes: Sequence[ProcessSettings], known: Mapping[str, ProcessId]
    ) -> Mapping[str, ProcessObservation]:
        async with asyncio.timeout(self.timeout):
            return await self.table.look(processes, known)

    def _on_done(self, seen: "asyncio.Future[Mapping[str, ProcessObservation]]") -> None:
        self._news.set()
        if not seen.cancelled():
            seen.exception()  # retrieved, even if nobody takes it any more

    async def wait(self) -> None:
        """Wait until a look is over, or a death is seen."""
        await self._news.wait()
        self._news.clear()

    def take_finished(self) -> ProcessLook | None:
        """A look that is over, those at deaths first: one at all is told when no other is under way any more."""
        for look in self._under_way:
            if look.seen.done() and (not look.is_whole or len(self._under_way) == 1):
                self._under_way.remove(look)
                return look
        return None

    def newest_of(self, look: ProcessLook) -> Sequence[ProcessSettings]:
        """Those of its processes of which no newer look has begun."""
        return [one for one in look.processes if self._newest.get(one.name) is look]

    def close(self) -> None:
        """Break off those that are under way; deaths that were seen are looked at again at the next one."""
        for look in self._under_way:
            look.seen.cancel()
            self._proofs |= look.proofs
        self._under_way.clear()
