"""The looks at guarded processes that are under way, side by side: a death waits for no look at others.

A look at all may take long, since it searches the machine for those that are down, or asks a systemd that does not answer.
Who dies or is started meanwhile is looked at alone, and told first. Of each process the newest look counts: an older one saw
it before it died, and would tell a state that is over.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from pulse_core.ports.host import ProcessId, ProcessObservation, ProcessTable
from pulse_core.projections.processes import ProcessHistory
from pulse_core.settings.processes import ProcessSettings
from pulse_core.watch.evaluate_process import recorded_process

Observations = Mapping[str, ProcessObservation]


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
    seen: asyncio.Future[Observations]


@dataclass(eq=False)
class ProcessLooks:
    """Begins looks, and returns them when they are over. timeout: the most seconds that one takes."""

    table: ProcessTable
    timeout: float
    _under_way: list[ProcessLook] = field(default_factory=list, init=False)
    _newest: dict[str, ProcessLook] = field(default_factory=dict, init=False)
    _stood: dict[str, ProcessId] = field(default_factory=dict, init=False)
    _proofs: set[ProcessId] = field(default_factory=set, init=False)
    _started: set[str] = field(default_factory=set, init=False)
    _news: asyncio.Event = field(default_factory=asyncio.Event, init=False)
    _has_failed: bool = field(default=False, init=False)
    """Whether the last look at all did not end in time: then who was started is not seen by the next one, either."""

    @property
    def dead(self) -> frozenset[ProcessId]:
        """Those whose death was seen, and is not told by a look yet."""
        return frozenset(self._proofs.union(*(look.proofs for look in self._under_way)))

    def add_proof(self, dead: ProcessId) -> None:
        """Remember that this death was seen through a pidfd."""
        self._proofs.add(dead)
        self._news.set()

    def add_started(self, name: str) -> None:
        """Remember that this one was started: until it is looked at, nobody is told of its death."""
        self._started.add(name)
        self._news.set()

    async def begin(
        self,
        processes: Sequence[ProcessSettings],
        histories: Mapping[str, ProcessHistory],
        known: Mapping[str, ProcessId],
    ) -> None:
        """Look at those whose death was seen; at all of these if no look is under way. Those that were started are among
        them, or looked at by themselves where that takes long.

        It returns when those were seen that nobody else has to be asked about: to wait for a task would take several turns
        of the loop, and each of a busy one takes long. known: who is known to stand for each.
        """
        dead = [one for one in processes if self._proofs_of(one.name, histories)]
        asked = [one for one in dead if one.systemd_unit or one.pid_file]
        is_slow = bool(self._under_way) or self._has_failed
        started = [one for one in processes if is_slow and one.name in self._started and one not in dead]
        at_once = [one for one in (*dead, *started) if not (one.systemd_unit or one.pid_file)]
        self._started.clear()
        if asked or not (dead or self._under_way):
            some = asked or processes
            seen: asyncio.Future[Observations] = asyncio.create_task(self._observe(some, known))
            self._add(some, histories, known, seen, is_whole=not dead)
        if at_once:
            seen = asyncio.get_running_loop().create_future()
            self._add(at_once, histories, known, seen)
            try:
                seen.set_result(await self._observe(at_once, known))
            except Exception as error:  # noqa: BLE001 - whoever takes it is told
                seen.set_exception(error)

    def _add(
        self,
        processes: Sequence[ProcessSettings],
        histories: Mapping[str, ProcessHistory],
        known: Mapping[str, ProcessId],
        seen: "asyncio.Future[Observations]",
        is_whole: bool = False,
    ) -> None:
        names = {one.name for one in processes}
        if is_whole:
            proofs = frozenset(self._proofs)
        else:
            proofs = frozenset().union(*(self._proofs_of(name, histories) for name in names))
        look = ProcessLook(processes, histories, dict(self._stood), proofs, is_whole, seen)
        seen.add_done_callback(partial(self._on_done, is_whole))
        self._proofs -= proofs
        self._under_way.append(look)
        kept = (set() if is_whole else histories.keys()) - names  # of those of which this look tells nothing
        self._newest = {name: one for name, one in self._newest.items() if name in kept}
        self._newest |= dict.fromkeys(names, look)
        self._stood = {name: one for name, one in self._stood.items() if name in kept}
        self._stood |= {name: one for name, one in known.items() if name in names}

    def _proofs_of(self, name: str, histories: Mapping[str, ProcessHistory]) -> frozenset[ProcessId]:
        """The deaths that were seen of who stood for this name, as it is recorded or as it was at the look before."""
        lasts = (recorded_process(histories[name]), self._stood.get(name))
        return frozenset(one for one in lasts if one in self._proofs)

    async def _observe(
        self, processes: Sequence[ProcessSettings], known: Mapping[str, ProcessId]
    ) -> Observations:
        async with asyncio.timeout(self.timeout):
            return await self.table.look(processes, known)

    def _on_done(self, is_whole: bool, seen: "asyncio.Future[Observations]") -> None:
        self._news.set()
        # It is retrieved, even if nobody takes it any more.
        failed = seen.cancelled() or seen.exception() is not None
        if is_whole:
            self._has_failed = failed

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
