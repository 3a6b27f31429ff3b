"""The tick loop: wait, take a snapshot, fold it, record what came of it."""

import asyncio
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from pulse_core.model.errors import LogUnavailable, PulseError
from pulse_core.model.event import Head
from pulse_core.model.tick import TickRecord
from pulse_core.model.verdict import Verdict
from pulse_core.model.vitals import Window
from pulse_core.ports import Clock, Objects, Vitals
from pulse_core.projections import Snapshot
from pulse_core.record import Facts
from pulse_core.settings import Settings
from pulse_core.tick.folding import Folded, Folding
from pulse_core.tick.portrait import portrait
from pulse_core.tick.wake import Waker

Failed = Callable[[str, str], None]


@dataclass(frozen=True, slots=True)
class Sources:
    """Where a snapshot comes from: what the log says, what the senses say, what is decided, what time it is."""

    facts: Facts
    windows: Callable[[], Mapping[str, Window]]
    settings: Callable[[], Settings]
    clock: Clock


class Ticker:
    """Folds a snapshot whenever it is time; `prev` is the one before, across restarts too.

    failed(whose, message) hears of rules that raise and of ticks that could not be recorded.
    """

    def __init__(
        self,
        sources: Sources,
        folding: Folding,
        vitals: Vitals,
        objects: Objects,
        failed: Failed,
        version: str,
    ) -> None:
        self.sources, self.folding = sources, folding
        self.vitals, self.objects, self.failed, self.version = vitals, objects, failed, version
        self.waker = Waker()
        self.prev: Snapshot | None = None
        self.number = 0
        self.beats = 0
        self.took_us: deque[int] = deque(maxlen=1_000)
        self._stopping = False

    def resume(self, prev: Snapshot | None) -> None:
        """Go on from the last snapshot of an earlier daemon."""
        self.prev = prev
        self.number = prev.tick if prev else 0

    def stop(self) -> None:
        """Finish the tick under way and return."""
        self._stopping = True
        self.waker.ping()

    async def run(self) -> None:
        """Tick until stopped, the first time at once."""
        now = asyncio.get_running_loop().time
        due = now() + await self.tick("start") / 1000
        while not self._stopping:
            gap = self.sources.settings().daemon.min_tick_ms / 1000
            reason = await self.waker.wait(gap, max(0.0, due - now()))
            self.beats += 1
            if reason and not self._stopping:
                due = now() + await self.tick(reason) / 1000

    async def tick(self, reason: str) -> int:
        """One tick; the milliseconds until the next one at the latest."""
        now = asyncio.get_running_loop().time
        began = now()
        curr = self._snapshot()
        folded = await self._fold(curr)
        daemon = self.sources.settings().daemon
        record = TickRecord(
            tick=curr.tick,
            moment=curr.now,
            woken_by=reason,
            head=Head(curr.projected.seq),
            samples=curr.samples(),
            settings=curr.settings.digest,
            version=self.version,
            layers=folded.layers,
            effects=tuple(effect.key for effect in folded.emitted),
            tick_ms=max(1, min(folded.verdict.tick_ms, daemon.tick_ms)),
            took_us=round((now() - began) * 1e6),
        )
        self.prev = curr
        self.took_us.append(record.took_us)
        self.vitals.record(await self._with_portrait(record, curr))
        return record.tick_ms

    def _snapshot(self) -> Snapshot:
        facts = self.sources.facts()
        self.number = max(self.number, facts.effects.last_tick) + 1
        windows = self.sources.windows()
        return Snapshot(self.number, self.sources.clock.now(), self.sources.settings(), windows, facts)

    async def _fold(self, curr: Snapshot) -> Folded:
        try:
            folded = await self.folding(self.prev or curr, curr)
        except LogUnavailable as error:
            self.failed("tick", f"its effects could not be recorded: {error}")
            retry = self.sources.settings().daemon.min_tick_ms * 4
            return Folded(Verdict(tick_ms=retry), (), ())
        for layer in folded.layers:
            if layer.outcome == "error":
                self.failed(f"rule:{layer.rule}", layer.notes[0])
        return folded

    async def _with_portrait(self, record: TickRecord, curr: Snapshot) -> TickRecord:
        """The record, naming the kept snapshot if effects were emitted; they are on their way already."""
        if not record.effects:
            return record
        try:
            return replace(record, snapshot=await self.objects.put(portrait(curr)))
        except (PulseError, OSError) as error:
            self.failed("tick", f"its snapshot could not be kept: {error}")
            return record
