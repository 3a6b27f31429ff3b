"""A rule host, as the daemon sees it: what is new goes out, a verdict comes back in time or the child is ended."""

import asyncio
import signal
import time
from collections.abc import Mapping, Sequence
from typing import Any

from pulse_adapters.rule_host.frames import packed
from pulse_adapters.rule_host.insight import Replayed, insight_of, kept_of, replayed_of
from pulse_adapters.rule_host.news import News
from pulse_adapters.rule_host.places import Places, placed
from pulse_adapters.rule_host.process import Process
from pulse_adapters.rule_host.scratch import Scratch
from pulse_core.model.event import Event
from pulse_core.ports import Fault, Insight, Kept, Loaded
from pulse_core.projections import Snapshot

US = 1_000_000
GRACE = 0.02
"""Seconds of a deadline that are kept for the child's own work."""
SLOW = 0.75
"""The part of a deadline after which the child is asked where it is."""
_HELD = 500
_LAST, _STUCK = 0.3, 5.0
_WORDS = 200

Message = dict[str, Any]


class Child:
    """Asks a process, and knows why it is no more."""

    def __init__(self, env: Mapping[str, str], scratch: Scratch) -> None:
        self.process = Process(env, self._said, self._gone)
        self.scratch = scratch
        self.alive = True
        self.units: Sequence[Fault] = ()
        self.places = Places({})
        self._open: dict[int, asyncio.Future[Message | None]] = {}
        self._number = 0
        self._epitaph: Fault | None = None

    def tell(self, message: Message) -> None:
        """Send what needs no answer."""
        self.process.send(packed(message))

    async def ask(self, message: Message, seconds: float) -> Message | None:
        """The answer, or None from a child that is dead: one that does not answer in time is."""
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
        """Ask where it is, which disturbs nothing; if there is no answer in time, end it."""
        self.process.where()  # of another time
        self.process.ask_where()
        unit = self.process.unit()
        await asyncio.wait([answer], timeout=max(0.0, until - time.monotonic()))
        if not answer.done():
            place = self.places.of_dump(self.process.where()) if self.process.unit() == unit else ""
            self._bury(f"took longer than {seconds * 1000:,.0f} ms, and its host was ended", place)
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
        """End it, since it said what it must not."""
        self.process.spoil(words)

    def _bury(self, words: str, place: str = "") -> None:
        # Who has said what is garbled may be done by now, and somebody else under way.
        unit = None if self.process.garbled else self.process.unit()
        if unit is None or unit >= len(self.units):
            fault = Fault("engine", placed(words, "" if self.process.garbled else place))
        else:
            whose, defined = self.units[unit]
            fault = Fault(whose, placed(words, place or defined))
        self._epitaph = self._epitaph or fault

    async def epitaph(self) -> Fault:
        """Why it is no more, and whose fault that was."""
        process = self.process
        await asyncio.wait([process.reaped], timeout=_LAST)
        if self._epitaph is None:
            process.output.drain()
            words = f"its host said {process.garbled}" if process.garbled else f"its host {self._end()}"
            last = process.output.words()[-_WORDS:]
            self._bury(
                words + (f"; it printed: {last}" if last else ""), self.places.of_dump(process.where())
            )
        assert self._epitaph is not None
        return self._epitaph

    def _end(self) -> str:
        code = self.process.reaped.result() if self.process.reaped.done() else 0
        return f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with status {code}"

    async def close(self) -> None:
        """Let it end, by force after a grace, and let go of what was its own."""
        self.process.hang_up()
        if self.alive:
            await asyncio.wait([self.process.reaped], timeout=_LAST)
        self.process.kill()
        await asyncio.wait([self.process.reaped], timeout=_STUCK)
        if self.process.reaped.done():  # else the kernel does not let it go, and we can't either
            self.process.close()
            await self.scratch.remove()


class ChildRuleHost:
    """`RuleHost` in a child that has loaded its revision."""

    def __init__(self, child: Child, loaded: Loaded, sent: Snapshot) -> None:
        self._child, self._loaded = child, loaded
        self._news = News(sent)
        self._seconds = sent.settings.engine.deadline / US
        self._closing: asyncio.Task[None] | None = None

    @property
    def loaded(self) -> Loaded:
        return self._loaded

    @property
    def alive(self) -> bool:
        return self._child.alive

    @property
    def pid(self) -> int:
        """The child's process."""
        return self._child.process.pid

    def feed(self, events: Sequence[Event]) -> None:
        if self.alive and self._news.hear(events) >= _HELD:
            self._child.tell(self._news.events())

    async def fold(self, prev: Snapshot, curr: Snapshot) -> Insight:
        """Fold `curr`; what the child takes for `prev` is what it folded last."""
        self._seconds = curr.settings.engine.deadline / US
        try:
            return await self._folded(curr)
        except Exception as error:  # noqa: BLE001 - whatever comes of a host costs the tick its insight, no more
            self._child.spoil(f"what nobody understands ({type(error).__name__}: {error})"[:_WORDS])
            return Insight(faults=(await self._child.epitaph(),))

    async def _folded(self, curr: Snapshot) -> Insight:
        answer = await self._child.ask({**self._news.of(curr), "do": "fold"}, self._seconds)
        if answer is None:
            return Insight(faults=(await self._child.epitaph(),))
        insight = insight_of(answer)
        if self._child.scratch.is_over():
            self._child.spoil("nothing, but filled its scratch folder")
            insight = insight._replace(faults=(*insight.faults, await self._child.epitaph()))
        return insight

    async def replay(self, ticks: Sequence[tuple[Sequence[Event], Snapshot]]) -> Replayed:
        """Fold recorded ticks, each with what was new in the log. A host that dies of one has answered none of them."""
        seconds = ticks[0][1].settings.engine.deadline / US
        told = []
        for events, snapshot in ticks:
            self._news.hear(events)
            told.append(self._news.of(snapshot))
        answer = await self._child.ask(
            {"do": "replay", "ticks": told, "seconds": seconds}, len(ticks) * seconds
        )
        if answer is None:
            return Replayed({}, {}, await self._child.epitaph())
        try:
            return replayed_of(answer)
        except ValueError as error:
            self._child.spoil(f"what nobody understands ({error})")
            return Replayed({}, {}, await self._child.epitaph())

    def quarantine(self, rules: Sequence[str]) -> None:
        self._child.tell({"do": "skip", "rules": list(rules)})

    async def keep(self) -> Mapping[str, Kept]:
        found = {}
        for name in self._loaded.projections:
            answer = await self._child.ask({"do": "keep", "name": name}, self._seconds)
            try:
                kept = kept_of(answer) if answer else None
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
