"""The daemon's side of a rule host: sends what is new, and kills a child that does not answer in time."""

import asyncio
import time
from collections.abc import Mapping, Sequence

from pulse_adapters.rule_host.process import RuleProcess
from pulse_adapters.rule_host.replies import fold_result_of, kept_value_of, replay_results_of
from pulse_adapters.rule_host.snapshot_delta import SnapshotDelta
from pulse_adapters.sandbox.scratch_folder import Scratch
from pulse_adapters.workers.framing import Message
from pulse_adapters.workers.run_as import RunAs
from pulse_adapters.workers.source_locations import Places, with_place
from pulse_core.model.event import Event
from pulse_core.ports import (
    EngineFault,
    FoldResult,
    LoadedRevision,
    RecordedInput,
    ReplayBatch,
    UserProjectionState,
)
from pulse_core.projections import Snapshot

US = 1_000_000
GRACE = 0.02
"""Seconds of a deadline that are kept for the child's own work."""
LEISURE = 1.0
"""Seconds that a host may take for recorded ticks beyond what its rules may: nobody waits for them."""
SLOW = 0.75
"""The part of a deadline after which the child is asked where it is."""
_HELD = 500
_LAST, _STUCK = 0.3, 5.0
_WORDS = 200


class RuleChild:
    """Sends requests to the child process, and records why it ended."""

    def __init__(self, env: Mapping[str, str], scratch: Scratch, run_as: RunAs) -> None:
        self.process = RuleProcess(env, self._said, self._gone)
        self.scratch, self.run_as = scratch, run_as
        self.alive = True
        self.units: Sequence[EngineFault] = ()
        self.places = Places({})
        self._open: dict[int, asyncio.Future[Message | None]] = {}
        self._number = 0
        self._end_fault: EngineFault | None = None

    def tell(self, message: Message) -> None:
        """Send a message that needs no answer."""
        self.process.send(message)

    async def ask(self, message: Message, seconds: float) -> Message | None:
        """The answer; None if the child is dead, as one that does not answer in time is then."""
        if not self.alive:
            return None
        began = time.monotonic()
        self._number += 1
        answer: asyncio.Future[Message | None] = asyncio.get_running_loop().create_future()
        self._open[self._number] = answer
        self.tell({**message, "id": self._number, "until": began + seconds - min(GRACE, seconds / 5)})
        await asyncio.wait([answer], timeout=seconds * SLOW)
        if not answer.done():
            await self._late(answer, began + seconds, seconds)
        return answer.result()

    async def _late(self, answer: "asyncio.Future[Message | None]", until: float, seconds: float) -> None:
        """Ask the child for a stack dump, which doesn't disturb it; kill it if there is still no answer in time."""
        self.process.where()  # of another time
        self.process.ask_where()
        unit = self.process.unit()
        await asyncio.wait([answer], timeout=max(0.0, until - time.monotonic()))
        if not answer.done():
            place = self.places.of_dump(self.process.where()) if self.process.unit() == unit else ""
            self._record_fault(f"took longer than {seconds * 1000:,.0f} ms, and its host was ended", place)
            self.process.kill()

    def _said(self, message: Message) -> None:
        answer = self._open.pop(message["id"], None) if isinstance(message.get("id"), int) else None
        if answer is None:
            self.process.spoil("an answer that nobody asked for")
        elif not answer.done():
            answer.set_result(message)

    def _gone(self) -> None:
        self.alive = False
        for answer in self._open.values():
            if not answer.done():
                answer.set_result(None)
        self._open.clear()

    def spoil(self, words: str) -> None:
        """Kill the child, since it sent something invalid."""
        self.process.spoil(words)

    def _record_fault(self, words: str, place: str = "") -> None:
        # The unit that wrote garbage may have finished meanwhile, and another be under way.
        unit = None if self.process.fault else self.process.unit()
        if unit is None or unit >= len(self.units):
            fault = EngineFault("engine", with_place(words, "" if self.process.fault else place))
        else:
            whose, defined = self.units[unit]
            fault = EngineFault(whose, with_place(words, place or defined))
        self._end_fault = self._end_fault or fault

    async def reason_of_end(self) -> EngineFault:
        """Why the child ended, and whose fault that was."""
        process = self.process
        await asyncio.wait([process.dead], timeout=_LAST)
        if self._end_fault is None:
            words = f"its host said {process.fault}" if process.fault else f"its host {process.end()}"
            last = process.last_words()[-_WORDS:]
            self._record_fault(
                words + (f"; it printed: {last}" if last else ""), self.places.of_dump(process.where())
            )
        assert self._end_fault is not None
        return self._end_fault

    async def close(self) -> None:
        """End the child, kill it after a grace period, and remove its scratch folder."""
        self.process.hang_up()
        if self.alive:
            await asyncio.wait([self.process.dead], timeout=_LAST)
        self.process.kill()
        await asyncio.wait([self.process.dead], timeout=_STUCK)
        if self.process.dead.done():  # else the kernel does not let it go, and we can't either
            await self.reason_of_end()  # while there is something to read it from
            self.process.close()
            await self.scratch.remove()


class ChildRuleHost:
    """`RuleHost` in a child that has loaded its revision."""

    def __init__(self, child: RuleChild, loaded: LoadedRevision, sent: Snapshot) -> None:
        self._child, self._loaded = child, loaded
        self._news = SnapshotDelta(sent)
        self._seconds = sent.settings.engine.deadline / US
        self._skipped: frozenset[str] = frozenset()
        self._closing: asyncio.Task[None] | None = None

    @property
    def loaded(self) -> LoadedRevision:
        return self._loaded

    @property
    def alive(self) -> bool:
        return self._child.alive

    @property
    def pid(self) -> int:
        """The child's pid."""
        return self._child.process.pid

    @property
    def defined(self) -> Mapping[str, str]:
        """Where each rule is defined, as `rules/night.py:12`; empty for a plugin's."""
        places = {unit.whose: unit.message for unit in self._child.units}
        return {name: places.get(f"rule:{name}", "") for name in self._loaded.rules}

    def feed(self, events: Sequence[Event]) -> None:
        if self.alive and self._news.hear(events) >= _HELD:
            self._child.tell(self._news.events())

    async def fold(self, prev: Snapshot, curr: Snapshot) -> FoldResult:
        """Fold `curr`. The child's `prev` is what it was sent last, so if `prev` is later, that is sent first."""
        self._seconds = curr.settings.engine.deadline / US
        try:
            if self._news.is_behind(prev):
                self._child.tell({**self._news.of(prev), "do": "stand"})
            return await self._folded(curr)
        except Exception as error:  # noqa: BLE001 - whatever comes of a host costs the tick its insight, no more
            self._child.spoil(f"what nobody understands ({type(error).__name__}: {error})"[:_WORDS])
            return FoldResult(faults=(await self._child.reason_of_end(),))

    async def _folded(self, curr: Snapshot) -> FoldResult:
        answer = await self._child.ask({**self._news.of(curr), "do": "fold"}, self._seconds)
        if answer is None:
            return FoldResult(faults=(await self._child.reason_of_end(),))
        fold_result = fold_result_of(answer, curr.tick, self.defined)
        if self._child.scratch.is_over():
            self._child.spoil("nothing, but filled its scratch folder")
            fold_result = fold_result._replace(
                faults=(*fold_result.faults, await self._child.reason_of_end())
            )
        return fold_result

    async def replay(self, ticks: Sequence[RecordedInput]) -> Sequence[ReplayBatch]:
        """Fold recorded ticks. A host that dies has answered none of the ticks of that request."""
        seconds = ticks[0].snapshot.settings.engine.deadline / US
        left, found = [self._told(tick) for tick in ticks], []
        while left:
            found.append(one := await self._replayed(left, seconds))
            left = left[one.done :] if not one.end else []
        return found

    def _told(self, tick: RecordedInput) -> Message:
        self._news.hear(tick.news)
        message = self._news.of(tick.snapshot)
        if tick.skip != self._skipped:
            self._skipped = tick.skip
            message["skip"] = sorted(tick.skip)
        return message

    async def _replayed(self, ticks: Sequence[Message], seconds: float) -> ReplayBatch:
        message = {"do": "replay", "ticks": ticks, "seconds": seconds}
        answer = await self._child.ask(message, len(ticks) * seconds + LEISURE)
        if answer is None:
            return ReplayBatch({}, {}, await self._child.reason_of_end())
        try:
            return replay_results_of(answer, len(ticks), self.defined)
        except ValueError as error:
            self._child.spoil(f"what nobody understands ({error})")
            return ReplayBatch({}, {}, await self._child.reason_of_end())

    def quarantine(self, rules: Sequence[str]) -> None:
        self._child.tell({"do": "skip", "rules": list(rules)})

    async def keep(self) -> Mapping[str, UserProjectionState]:
        found = {}
        for name in self._loaded.projections:
            answer = await self._child.ask({"do": "keep", "name": name}, self._seconds)
            try:
                kept = kept_value_of(answer) if answer else None
            except ValueError as error:
                self._child.spoil(f"what nobody understands ({error})")
                return {}
            if kept:
                found[name] = kept
        return found

    async def close(self) -> None:
        if self._closing is None:
            self._closing = asyncio.create_task(self._child.close(), name="ending a rule host")
        await asyncio.shield(self._closing)
