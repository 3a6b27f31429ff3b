"""Starts rule hosts without delay: a child that has imported all but the author's code waits for the next save."""

import asyncio
from collections.abc import Mapping
from contextlib import suppress

from pulse_adapters.rule_host.host import ChildRuleHost, RuleChild
from pulse_adapters.rule_host.hosts import ChildHosts
from pulse_core.ports import CannotLoad, History, Revision, UserProjectionState
from pulse_core.projections import Snapshot


class StandbyHosts:
    """`Hosts` with a child started in advance: `warm` starts it, `close` ends one that was not used."""

    def __init__(self, hosts: ChildHosts) -> None:
        self._hosts = hosts
        self._spare: RuleChild | None = None
        self._warming: asyncio.Task[None] | None = None

    @property
    def spare(self) -> int | None:
        """The waiting process."""
        return self._spare.process.pid if self._spare else None

    async def warm(self) -> None:
        """Start a child that waits for a revision to load; without one, the next start takes longer."""
        if self._spare is None or not self._spare.alive:
            with suppress(CannotLoad):
                self._spare = await self._hosts.child()

    def warm_soon(self) -> None:
        """Start it in the background."""
        self._warming = asyncio.create_task(self.warm(), name="a child that stands by")

    async def close(self) -> None:
        """End the waiting child."""
        if self._warming:
            await self._warming
        spare, self._spare = self._spare, None
        if spare:
            await spare.close()

    async def start(
        self, revision: Revision, prev: Snapshot, history: History, kept: Mapping[str, UserProjectionState]
    ) -> ChildRuleHost:
        """Start a host that has loaded the revision and stands at `prev`. Raises CannotLoad."""
        return await self._hosts.entrusted(await self._taken(), revision, prev, history, kept)

    async def _taken(self) -> RuleChild:
        spare, self._spare = self._spare, None
        if spare and not spare.alive:
            await spare.close()
            spare = None
        return spare or await self._hosts.child()
