"""Sweeping a home: objects that nothing names, and files that are of no use any more.

An object is on disk before the event that names it. So what was touched within the hour stays, what was put last
stays whatever the clock says, and only the process that writes the log deletes: the daemon, or whoever holds the
home's lock.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

from pulse_adapters.config.home import Home
from pulse_adapters.objects import FileObjects, shards
from pulse_adapters.sqlite.garbage import NamedObjects
from pulse_core.ports import Swept
from pulse_core.settings import Settings
from upulse_cli.leftovers import AGE, leftovers, removed

Unnamed = Callable[[Sequence[str]], Awaitable[Sequence[str]]]
"""Those of the given objects that no tick names."""


@dataclass(frozen=True)
class Broom:
    """A `Sweep` of a home. damage: says what is wrong with the log, or nothing; then no object goes."""

    home: Home
    objects: FileObjects
    named: NamedObjects
    unnamed: Unnamed
    settings: Callable[[], Settings]
    damage: Callable[[], str] = lambda: ""

    async def __call__(self) -> Swept:
        """Sweep; what was taken away."""
        orphans = await self.orphans()
        sizes = await asyncio.to_thread(self.objects.discard, orphans, time.time() - AGE)
        found = await asyncio.to_thread(
            lambda: [removed(one) for one in leftovers(self.home, self.settings())]
        )
        gone = [size for size in found if size is not None]
        return Swept(len(sizes), len(gone), sum(sizes) + sum(gone))

    async def look(self) -> Swept:
        """What would be taken away."""
        orphans = await self.orphans()
        found = await asyncio.to_thread(lambda: list(leftovers(self.home, self.settings())))
        return Swept(len(orphans), len(found), sum(orphans.values()) + sum(one.bytes for one in found))

    async def orphans(self) -> Mapping[str, int]:
        """Old objects that neither a row of the log nor a tick names, with their bytes.

        None while the log is damaged, or copies of damaged stores are kept: their rows may name objects, too.
        """
        if self.damage() or any(self.home.damaged.glob("*")):
            return {}
        await asyncio.to_thread(self.named.advance)
        orphans: dict[str, int] = {}
        for shard in await asyncio.to_thread(list, shards(self.home.objects, time.time() - AGE)):
            unknown = [name for name in shard.objects if name not in self.named]
            if unknown:
                orphans |= {name: shard.objects[name] for name in await self.unnamed(unknown)}
        return orphans
