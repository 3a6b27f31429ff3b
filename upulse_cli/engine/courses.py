"""Who is asked at each recorded tick: one revision throughout, or whichever was in force."""

from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from typing import Protocol

from pulse_adapters.rule_host.host import ChildRuleHost, RecordedInput
from pulse_adapters.rule_host.replies import Replayed
from pulse_core.model.errors import PulseError
from pulse_core.model.tick import NOBODY
from pulse_core.ports import EngineFault, History, Hosts, Revision
from pulse_core.projections import Snapshot
from upulse_cli.engine.past import Then

IN_FORCE = Revision("in-force", "")
"""Stands for whichever revision was asked at each tick."""


class Course(Protocol):
    """Answers for recorded ticks, in their order. defined: where each rule is, as far as that is known beforehand."""

    defined: Mapping[str, str]

    async def fold(self, prev: Snapshot, thens: Sequence[Then]) -> Sequence[Replayed]:
        """What is said of these ticks; prev: what was seen before them."""
        ...

    async def close(self) -> None:
        """End whoever was asked."""
        ...


class Throughout:
    """One revision, whoever was in force."""

    def __init__(self, revision: Revision, host: ChildRuleHost) -> None:
        self.revision, self._host, self.defined = revision, host, host.defined

    async def fold(self, prev: Snapshot, thens: Sequence[Then]) -> Sequence[Replayed]:
        """What it says; rules of its own that were quarantined then are passed over here, too."""
        return await self._host.replay(
            [RecordedInput(then.news, then.snapshot, self._quarantined(then)) for then in thens]
        )

    def _quarantined(self, then: Then) -> frozenset[str]:
        engine = then.snapshot.engine
        return frozenset(engine.quarantined if engine.commit == self.revision.commit else ())

    async def close(self) -> None:
        """End the host."""
        await self._host.close()


class InForce:
    """The revision that was asked at each tick, and of it the rules that were; nobody where nobody was.

    ensure: a commit, laid out.
    """

    def __init__(self, hosts: Hosts, history: History, ensure: Callable[[str], Revision]) -> None:
        self._hosts, self._history, self._ensure = hosts, history, ensure
        self._commit = self._last = ""
        self._host: ChildRuleHost | None = None
        self._loaded: frozenset[str] = frozenset()
        self.defined: Mapping[str, str] = {}

    async def fold(self, prev: Snapshot, thens: Sequence[Then]) -> Sequence[Replayed]:
        """What was said then. A revision that can't be loaded any more is a fault, and says nothing."""
        found: list[Replayed] = []
        for commit, group in groupby(thens, self._asked):
            ticks = list(group)
            if commit and commit != self._commit:
                found += await self._turn(commit, prev, len(ticks))
            if self._host:
                found += await self._host.replay([self._recorded(then) for then in ticks])
            prev = ticks[-1].snapshot
        return found

    def _asked(self, then: Then) -> str:
        """Where nobody was asked, the one before goes on and says nothing."""
        if then.engine and then.engine != NOBODY:
            self._last = then.engine
        return self._last

    async def _turn(self, commit: str, prev: Snapshot, ticks: int) -> Sequence[Replayed]:
        """Ask another revision from here on."""
        await self.close()
        self._commit = commit
        try:
            host = await self._hosts.start(self._ensure(commit), prev, self._history, {})
        except PulseError as error:
            return [Replayed({}, {}, EngineFault(f"engine {commit[:12]}", str(error)), ticks)]
        assert isinstance(host, ChildRuleHost)
        self._host, self._loaded = host, frozenset(host.loaded.rules)
        return ()

    def _recorded(self, then: Then) -> RecordedInput:
        return RecordedInput(then.news, then.snapshot, self._loaded - then.layers)

    async def close(self) -> None:
        """End the host at work."""
        host, self._host = self._host, None
        if host:
            await host.close()
