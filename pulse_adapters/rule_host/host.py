"""A rule host as the daemon uses it: sends of each snapshot only what the child does not have yet, and folds ticks."""

import asyncio
import time
from collections.abc import Mapping, Sequence
from typing import Any

from pulse_adapters.rule_host.process import RuleChild
from pulse_adapters.rule_host.replies import FoldReply, HistoryReply, LoadedNames, ReplayReply
from pulse_adapters.workers.framing import Message, WorkerFault
from pulse_core.composition import FOLD
from pulse_core.model.event import Event
from pulse_core.model.vitals import Sample, Window
from pulse_core.ports.engine import (
    FoldResult,
    LoadedRevision,
    RecordedInput,
    ReplayBatch,
    UserProjectionState,
)
from pulse_core.ports.loops import join_in_slices
from pulse_core.projections.state import Snapshot, encode_in_pieces
from pulse_core.settings.settings import Settings

US = 1_000_000
LEISURE = 1.0
"""Seconds that a host may take for recorded ticks beyond what its rules may: nobody waits for them."""
MOST_KEPT = 4 * 1024 * 1024
"""Characters of the values of all projections of an engine that are kept; the next host folds the others anew."""
KEEPING = 1.0
"""Seconds after which no more of them are asked for: a tick waits meanwhile, and each may take a deadline to come."""
_HELD = 500
_NOTHING = Window()


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
                until = time.monotonic() + self._seconds
                self._child.send({**self._delta.of(prev), "do": "stand", "until": until})
            reply = await self._child.ask({**self._delta.of(curr), "do": "fold"}, FoldReply, self._seconds)
            if reply is not None:
                result = reply.result(curr.tick, self._names)
                if not self._child.scratch.is_over():
                    return result
                self._child.spoil("nothing, but filled its scratch folder")
                return result._replace(faults=(*result.faults, await self._child.reason_of_end()))
        except Exception as error:  # noqa: BLE001 - whatever comes of a host costs the tick its insight, no more
            self._child.refuse(error)
        return FoldResult(faults=(await self._child.reason_of_end(),))

    async def replay(self, ticks: Sequence[RecordedInput]) -> Sequence[ReplayBatch]:
        """Fold recorded ticks. A host that dies has answered none of the ticks of that request."""
        seconds = ticks[0].snapshot.settings.engine.deadline / US
        left, found = [self._told(tick) for tick in ticks], list[ReplayBatch]()
        while left:
            message = {"do": "replay", "ticks": left, "seconds": seconds}
            reply = await self._child.ask(message, ReplayReply, len(left) * seconds + LEISURE)
            try:
                if reply is not None:
                    found.append(one := reply.batch(self._names, [tick["tick"] for tick in left]))
                    left = left[one.done :]
                    continue
            except WorkerFault as fault:
                self._child.refuse(fault)
            return [*found, ReplayBatch({}, {}, await self._child.reason_of_end())]
        return found

    def _told(self, tick: RecordedInput) -> Message:
        self._delta.add_events(tick.news)
        message = self._delta.of(tick.snapshot)
        if tick.skip != self._skipped:
            self._skipped = tick.skip
            message["skip"] = sorted(tick.skip)
        return message

    def quarantine(self, rules: Sequence[str]) -> None:
        self._child.send({"do": "skip", "rules": list(rules)})

    async def keep(self) -> Mapping[str, UserProjectionState]:
        found, room, until = {}, MOST_KEPT, time.monotonic() + KEEPING
        for name in self.loaded.projections:
            if time.monotonic() > until:
                break
            reply = await self._child.ask({"do": "keep", "name": name}, HistoryReply, self._seconds)
            try:
                state = reply.state(self._delta.row) if reply else None
            except WorkerFault as fault:
                self._child.refuse(fault)
                return {}
            if state:
                if (room := room - len(state.state)) < 0:
                    break
                found[name] = state
        return found

    async def close(self) -> None:
        if self._closing is None:
            self._closing = asyncio.create_task(self._child.shut_down(), name="ending a rule host")
        await asyncio.shield(self._closing)


async def full_snapshot(snapshot: Snapshot) -> Message:
    """A whole snapshot as a message. The loop turns meanwhile: a thousand followed logs take 15 ms."""
    message = {
        **_tick(snapshot),
        "windows": _windows({}, snapshot.windows),
        "settings": _settings(snapshot.settings),
    }
    values = ((name, snapshot.state.of(one)) for name, one in FOLD.projections.items())
    texts = {name: await join_in_slices(encode_in_pieces(value)) for name, value in values}
    return {**message, "projections": texts}


class SnapshotDelta:
    """Remembers what was sent. Events are held until a snapshot contains them; each is taken once, in the log's order."""

    def __init__(self, sent: Snapshot) -> None:
        self._windows, self._digest = sent.windows, sent.settings.digest
        self._sent = _place(sent)
        self._events, self._newest = list[Event](), self.row

    def add_events(self, events: Sequence[Event]) -> int:
        """Hold those of these events that were not held before; returns how many are held now."""
        if news := [event for event in events if event.seq > self._newest]:
            self._events += news
            self._newest = news[-1].seq
        return len(self._events)

    def events(self) -> Message:
        """Take the held events, which are sent before the next snapshot."""
        events, self._events = self._events, []
        return {"do": "feed", "events": events}

    @property
    def row(self) -> int:
        """The last row of the log that was sent."""
        return self._sent[1]

    def is_behind(self, snapshot: Snapshot) -> bool:
        """Whether the snapshot sent last is older than this one."""
        (tick, row), (sent, known) = _place(snapshot), self._sent
        return tick > sent and row >= known

    def of(self, snapshot: Snapshot) -> Message:
        """What is new in this snapshot."""
        message = {**self.events(), **_tick(snapshot), "windows": _windows(self._windows, snapshot.windows)}
        self._windows, self._sent = snapshot.windows, _place(snapshot)
        if snapshot.settings.digest != self._digest:
            self._digest = snapshot.settings.digest
            message["settings"] = _settings(snapshot.settings)
        return message


def _place(snapshot: Snapshot) -> tuple[int, int]:
    return snapshot.tick, snapshot.state.seq + snapshot.state.provisional


def _tick(snapshot: Snapshot) -> Message:
    state = snapshot.state
    return {
        "tick": snapshot.tick,
        "now": snapshot.now,
        "seq": state.seq,
        "provisional": state.provisional,
    }


def _settings(settings: Settings) -> Message:
    return {"digest": settings.digest, "values": settings.model_dump(mode="json", by_alias=True)}


def _windows(before: Mapping[str, Window], windows: Mapping[str, Window]) -> Message:
    """The number of samples and the new ones, by key; 0 for a key that is gone."""
    news: Message = dict.fromkeys(before.keys() - windows.keys(), (0, ()))
    for key, window in windows.items():
        if window is not (old := before.get(key, _NOTHING)):
            newest = old.last.id if old.last else -1
            fresh = [_row(sample) for sample in window.samples if sample.id > newest]
            if len(window.samples) - len(fresh) > len(
                old.samples
            ):  # as after a start, when little was remembered
                fresh = [_row(sample) for sample in window.samples]
            news[key] = (len(window.samples), fresh)
    return news


def _row(sample: Sample) -> tuple[Any, ...]:
    return sample.id, sample.moment, sample.data
