"""A rule host as the daemon uses it: sends what is new, and folds ticks."""

import asyncio
from collections.abc import Mapping, Sequence

from pulse_adapters.rule_host.process import RuleChild
from pulse_adapters.rule_host.replies import FoldReply, HistoryReply, LoadedNames, ReplayReply
from pulse_adapters.rule_host.snapshot_delta import SnapshotDelta
from pulse_adapters.workers.framing import Message, WorkerFault
from pulse_core.model.event import Event
from pulse_core.ports.engine import (
    EngineFault,
    FoldResult,
    LoadedRevision,
    RecordedInput,
    ReplayBatch,
    UserProjectionState,
)
from pulse_core.projections.state import Snapshot

US = 1_000_000
LEISURE = 1.0
"""Seconds that a host may take for recorded ticks beyond what its rules may: nobody waits for them."""
_HELD = 500


class ChildRuleHost:
    """`RuleHost` in a child that has loaded its revision."""

    def __init__(self, child: RuleChild, loaded: LoadedRevision, names: LoadedNames, sent: Snapshot) -> None:
        self._child, self.loaded, self._names = child, loaded, names
        self._delta = SnapshotDelta(sent)
        self._seconds = sent.settings.engine.deadline / US
        self._skipped: frozenset[str] = frozenset()
        self._closing: asyncio.Task[None] | None = None

    @property
    def alive(self) -> bool:
        return self._child.alive

    @property
    def pid(self) -> int:
        """The child's pid."""
        return self._child.pid

    @property
    def defined(self) -> Mapping[str, str]:
        """Where each rule is defined, as `rules/night.py:12`; empty for a plugin's."""
        return self._names.places

    def feed(self, events: Sequence[Event]) -> None:
        if self.alive and self._delta.add_events(events) >= _HELD:
            self._child.send(self._delta.events())

    async def fold(self, prev: Snapshot, curr: Snapshot) -> FoldResult:
        """Fold `curr`. The child's `prev` is what it was sent last, so if `prev` is later, that is sent first."""
        self._seconds = curr.settings.engine.deadline / US
        try:
            if self._delta.is_behind(prev):
                self._child.send({**self._delta.of(prev), "do": "stand"})
            return await self._folded(curr)
        except Exception as error:  # noqa: BLE001 - whatever comes of a host costs the tick its insight, no more
            return FoldResult(faults=(await self._spoilt(error),))

    async def _spoilt(self, error: Exception) -> EngineFault:
        """The fault of a child whose answer has led to an error; the child is ended by it."""
        self._child.refuse(error)
        return await self._child.reason_of_end()

    async def _folded(self, curr: Snapshot) -> FoldResult:
        reply = await self._child.ask({**self._delta.of(curr), "do": "fold"}, FoldReply, self._seconds)
        if reply is None:
            return FoldResult(faults=(await self._child.reason_of_end(),))
        result = reply.result(curr.tick, self._names)
        if self._child.scratch.is_over():
            self._child.spoil("nothing, but filled its scratch folder")
            result = result._replace(faults=(*result.faults, await self._child.reason_of_end()))
        return result

    async def replay(self, ticks: Sequence[RecordedInput]) -> Sequence[ReplayBatch]:
        """Fold recorded ticks. A host that dies has answered none of the ticks of that request."""
        seconds = ticks[0].snapshot.settings.engine.deadline / US
        left, found = [self._told(tick) for tick in ticks], []
        while left:
            found.append(one := await self._replayed(left, seconds))
            left = left[one.done :] if not one.end else []
        return found

    def _told(self, tick: RecordedInput) -> Message:
        self._delta.add_events(tick.news)
        message = self._delta.of(tick.snapshot)
        if tick.skip != self._skipped:
            self._skipped = tick.skip
            message["skip"] = sorted(tick.skip)
        return message

    async def _replayed(self, ticks: Sequence[Message], seconds: float) -> ReplayBatch:
        message = {"do": "replay", "ticks": ticks, "seconds": seconds}
        reply = await self._child.ask(message, ReplayReply, len(ticks) * seconds + LEISURE)
        if reply is None:
            return ReplayBatch({}, {}, await self._child.reason_of_end())
        try:
            return reply.batch(self._names, [tick["tick"] for tick in ticks])
        except Exception as error:  # noqa: BLE001 - likewise
            return ReplayBatch({}, {}, await self._spoilt(error))

    def quarantine(self, rules: Sequence[str]) -> None:
        self._child.send({"do": "skip", "rules": list(rules)})

    async def keep(self) -> Mapping[str, UserProjectionState]:
        found = {}
        for name in self.loaded.projections:
            reply = await self._child.ask({"do": "keep", "name": name}, HistoryReply, self._seconds)
            try:
                state = reply.state(self._delta.row) if reply else None
            except WorkerFault as fault:
                await self._spoilt(fault)
                return {}
            if state:
                found[name] = state
        return found

    async def close(self) -> None:
        if self._closing is None:
            self._closing = asyncio.create_task(self._child.shut_down(), name="ending a rule host")
        await asyncio.shield(self._closing)
