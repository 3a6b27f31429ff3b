"""Twins that forget, as a disk would take it away from memory: what grows in a world with these is the daemon's."""

from collections import deque
from collections.abc import AsyncIterator, Collection, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

from pulse_adapters.memory.executors import MemoryExecutor
from pulse_adapters.memory.log import MemoryLog
from pulse_adapters.memory.logs import MemoryLogs
from pulse_adapters.memory.stores import MemoryObjects
from pulse_core.model.event import NO_CHAIN, Draft, Event, Head
from tests.simulation.world import World

KEPT = 100


class ThinLog(MemoryLog):
    """A log that remembers its newest rows only; `counts` tells how many of each kind there were."""

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self.rows = 0
        self.counts: dict[str, int] = {}
        self._tail: deque[tuple[Event, bytes]] = deque(maxlen=KEPT)

    @property
    def head(self) -> Head:
        return Head(self.rows, self._tail[-1][1] if self._tail else NO_CHAIN)

    def _recorded(self, draft: Draft, text: str) -> Event | None:
        return next((event for event, _ in self._tail if event.id == draft.id), None) if draft.id else None

    def _row(self, draft: Draft, text: str) -> Event:
        event = super()._row(draft, text)._replace(seq=self.rows + 1)
        before, self.rows = self.head.chain, event.seq
        self._tail.append((event, sha256(before + repr(event).encode()).digest()))
        self.counts[event.kind] = self.counts.get(event.kind, 0) + 1
        for grows in (self.events, self._ids, self._digests):
            grows.clear()
        del self.chains[1:]
        return event

    async def since(
        self, seq: int, kinds: Collection[str] | None = None, upto: int | None = None
    ) -> AsyncIterator[Sequence[Event]]:
        assert not self._tail or self._tail[0][0].seq <= seq + 1, (
            "these rows are forgotten: keep more of them"
        )
        last = self.rows if upto is None else upto
        behind = [event for event, _ in self._tail if seq < event.seq <= last]
        if wanted := [event for event in behind if kinds is None or event.kind in kinds]:
            yield wanted

    async def has(self, id_: str) -> bool:
        return any(event.id == id_ for event, _ in self._tail)

    async def chain_at(self, seq: int) -> bytes | None:
        return next((chain for event, chain in self._tail if event.seq == seq), None)


class ThinObjects(MemoryObjects):
    """Objects of which the newest few are remembered."""

    async def put(self, blob: bytes) -> str:
        name = await super().put(blob)
        while len(self.blobs) > 20:
            del self.blobs[next(iter(self.blobs))]
        return name


@dataclass
class Lines:
    """A list of lines of which those that were read are only counted."""

    gone: int = 0
    new: list[str] = field(default_factory=list)

    def __len__(self) -> int:
        return self.gone + len(self.new)

    def __getitem__(self, part: slice) -> list[str]:
        return self.new[part.start - self.gone :]

    def extend(self, lines: Sequence[str]) -> None:
        self.new.extend(lines)


class ThinLogs(MemoryLogs):
    """Logs whose lines are forgotten as soon as they are read."""

    def write(self, source: str, *lines: str) -> None:
        written = self.lines.setdefault(source, Lines())  # type: ignore[arg-type]  # a list that forgets
        super().write(source, *lines)
        assert isinstance(written, Lines)
        written.gone, written.new = len(written), []

    def begin_minute(self) -> None:
        """Lines are told again, however many the last minute had."""
        self._told.clear()


def thinned(world: World) -> None:
    """Let a world that has not begun keep only the newest of everything that it writes down for tests."""
    world.log = ThinLog(world.clock)
    world.objects = ThinObjects()
    world.vitals.kept = 300
    world.host.starts, world.host.asked = deque(maxlen=10), deque(maxlen=10)  # type: ignore[assignment]  # lists that forget
    for executor in world.executors.values():
        if isinstance(executor, MemoryExecutor):
            executor.began, executor.done = deque(maxlen=10), deque(maxlen=10)  # type: ignore[assignment]  # as above
