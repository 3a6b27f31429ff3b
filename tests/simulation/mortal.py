"""An engine whose daemon can be killed before and after every step that it takes outside of itself."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field

from pulse_adapters.memory.engine import MemoryHosts, MemoryRevisions, MemoryRuleHost
from pulse_core.engine.engine_context import EngineParts
from pulse_core.ports.engine import History, Revision, UserProjectionState
from pulse_core.projections.state import Snapshot
from pulse_core.rules import Rule
from tests.simulation.world import World


class Fate:
    """Counts the steps of a life, and ends it at one of them."""

    def __init__(self) -> None:
        self.step, self.last = 0, -1
        self.died, self.buried = asyncio.Event(), asyncio.Event()

    def begin(self, last: int | None) -> None:
        """A new life, which ends at this step if it comes so far."""
        self.step, self.last = 0, -1 if last is None else last
        self.died, self.buried = asyncio.Event(), asyncio.Event()

    async def __call__(self) -> None:
        """One step."""
        self.step += 1
        if self.step - 1 == self.last:
            self.died.set()
            await self.buried.wait()
            raise asyncio.CancelledError


@dataclass
class Revisions(MemoryRevisions):
    """A repository where each verb may be the last."""

    fate: Fate = field(default_factory=Fate)

    async def ensure(self, commit: str) -> Revision:
        await self.fate()
        revision = await super().ensure(commit)
        await self.fate()
        return revision

    async def point_main(self, commit: str, expected: str) -> str:
        await self.fate()
        stray = await super().point_main(commit, expected)
        await self.fate()
        return stray

    async def going_back(self, to: str, rejected: str, why: str) -> tuple[Revision, str]:
        await self.fate()
        back = await super().going_back(to, rejected, why)
        await self.fate()
        return back


@dataclass
class Hosts(MemoryHosts):
    """Hosts that end with their daemon."""

    fate: Fate = field(default_factory=Fate)

    async def start(
        self, revision: Revision, prev: Snapshot, history: History, kept: Mapping[str, UserProjectionState]
    ) -> MemoryRuleHost:
        await self.fate()
        host = await super().start(revision, prev, history, kept)
        await self.fate()
        return host


class Lives:
    """An engine in memory, and lives of daemons one after the other, each killed at a step but the last."""

    def __init__(self, engines: Mapping[str, Sequence[Rule] | None], fate: Fate) -> None:
        self.fate = fate
        self.revisions = Revisions(dict(engines), "first", fate=fate)
        self.hosts = Hosts(self.revisions, fate=fate)
        self.parts = EngineParts(self.revisions, self.hosts)
        self.steps = 0
        self._deeds: list[Callable[[], Awaitable[None]]] = []

    async def live(
        self, world: World, deeds: Sequence[Callable[[], Awaitable[None]]], last: Sequence[int], rest: float
    ) -> None:
        """Do these things one after the other, once each, in as many lives as are needed; then rest, seconds."""
        world.log.commit, self._deeds = self.fate, list(deeds)
        world.log.committed = self._acknowledged
        for step in (*last, None):
            self.fate.begin(step)
            if await self._life(world, rest):
                break
        self.steps = self.fate.step
        self.fate.begin(None)

    async def _acknowledged(self) -> None:
        try:
            await self.fate()
        except asyncio.CancelledError:
            return  # it is on disk, and nobody hears of it

    async def _life(self, world: World, rest: float) -> bool:
        """One life; whether it was lived to its end."""
        living = asyncio.create_task(self._lived(world, rest))
        dying = asyncio.create_task(self.fate.died.wait())
        await asyncio.wait([living, dying], return_when=asyncio.FIRST_COMPLETED)
        dying.cancel()
        if living.done():
            living.result()
            return True
        await world.crash()
        for host in self.hosts.started:
            host.alive = False
        living.cancel()
        await asyncio.wait([living])
        self.fate.buried.set()
        await asyncio.sleep(0.1)
        return False

    async def _lived(self, world: World, rest: float) -> None:
        await world.start()
        while self._deeds:
            await asyncio.sleep(0.5)
            await self._deeds.pop(0)()
        await asyncio.sleep(rest)
