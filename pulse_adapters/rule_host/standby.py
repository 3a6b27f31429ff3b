"""Hosts that begin at once: a child that has imported all but the author's code stands by for the next save."""

import asyncio
from collections.abc import Mapping
from contextlib import suppress

from pulse_adapters.rule_host.host import ChildRuleHost, RuleChild
from pulse_adapters.rule_host.hosts import ChildHosts
from pulse_core.ports import CannotLoad, History, Revision, UserProjectionState
from pulse_core.projections import Snapshot


class StandbyHosts:
    """`Hosts` that have the next child ready; `warm` makes it ready, `close` ends one that nobody took."""

    def __init__(self, hosts: ChildHosts) -> None:
        self._hosts = hosts
        self._spare: RuleChild | None = None
        self._warming: asyncio.Task[None] | None = None

    @property
    def spare(self) -> int | None:
        """The process that stands by."""
        return self._spare.process.pid if self._spare else None

    async def warm(self) -> None:
        """Begin a child that waits for what it is to load; without one, the next start takes longer."""
        if self._spare is None or not self._spare.alive:
            with suppress(CannotLoad):
                self._spare = await self._hosts.child()

    def warm_soon(self) -> None:
        """The same, beside what goes on."""
        self._warming = asyncio.create_task(self.warm(), name="a child that stands by")

    async def close(self) -> None:
        """End the one that stands by."""
        if self._warming:
            await self._warming
        spare, self._spare = self._spare, None
        if spare:
            await spare.close()

    async def start(
        self, revision: Revision, prev: Snapshot, history: History, kept: Mapping[str, UserProjectionState]
    ) -> ChildRuleHost:
        """A host that has loaded the revision and stands at `prev`. Raises CannotLoad."""
        return await self._hosts.entrusted(await self._taken(), revision, prev, history, kept)

    async def _taken(self) -> RuleChild:
        spare, self._spare = self._spare, None
        if spare and not spare.alive:
            await spare.close()
            spare = None
        return spare or await self._hosts.child()
