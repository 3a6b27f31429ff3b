"""Hosts that begin at once: a child that has imported all but the author's code stands by for the next save."""

from collections.abc import Mapping
from contextlib import suppress

from pulse_adapters.rule_host.host import Child, ChildRuleHost
from pulse_adapters.rule_host.hosts import ChildHosts, _environment, _real, _Rebuilding
from pulse_adapters.rule_host.insight import loaded_of
from pulse_adapters.rule_host.scratch import Scratch
from pulse_core.ports import CannotLoad, History, Kept, Revision
from pulse_core.projections import Snapshot


class WarmHosts:
    """`Hosts` that have the next child ready; `warm` makes it ready, `close` ends one that nobody took."""

    def __init__(self, hosts: ChildHosts) -> None:
        self._hosts = hosts
        self._spare: Child | None = None

    @property
    def spare(self) -> int | None:
        """The process that stands by."""
        return self._spare.process.pid if self._spare else None

    def warm(self) -> None:
        """Begin a child that waits for what it is to load; without one, the next start takes longer."""
        if self._spare is None or not self._spare.alive:
            with suppress(CannotLoad):
                self._spare = self._child()

    async def close(self) -> None:
        """End the one that stands by."""
        spare, self._spare = self._spare, None
        if spare:
            await spare.close()

    async def start(
        self, revision: Revision, prev: Snapshot, history: History, kept: Mapping[str, Kept]
    ) -> ChildRuleHost:
        """A host that has loaded the revision and stands at `prev`. Raises CannotLoad."""
        child = await self._taken()
        try:
            answer = await self._hosts._begun(child, _real(revision.path), prev)
            await _Rebuilding(child, answer, prev, self._hosts.load).run(history, kept)
            return ChildRuleHost(child, loaded_of(answer), prev)
        except ValueError as error:
            await child.close()
            raise CannotLoad(f"the rule host said what nobody understands: {error}") from error
        except BaseException:
            await child.close()
            raise

    async def _taken(self) -> Child:
        spare, self._spare = self._spare, None
        if spare and not spare.alive:
            await spare.close()
            spare = None
        return spare or self._child()

    def _child(self) -> Child:
        try:
            scratch = Scratch(self._hosts.scratch, self._hosts.user)
            return Child(_environment(scratch.path, self._hosts.plugins), scratch)
        except OSError as error:
            raise CannotLoad(f"no rule host can be started: {error}") from error
