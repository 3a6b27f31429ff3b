"""The event log as the daemon uses it: it can hold events in memory until the disk takes them.

Theory. An event is *recorded* when its commit is on disk, and *provisional* while the journal alone holds it. Two
situations need provisional events, and both follow from one rule: survival must not wait for the disk.

1. The disk takes nothing. What watchers conclude and what survival wishes is held, projections count it in, and the
   executor acts on it, if the action bears repetition. Held events are written first and in order, with the times at
   which they happened. Nobody outside is told that they are recorded. That may last for ever: `HeldDrafts` is bounded,
   and leaves out first what survival does not need. Projections have counted in what is left out, and keep it until
   the recorded rows arrive.

   A disk may also not answer at all. Survival waits for it no longer than PATIENCE (`append_in_time`), then holds the
   same drafts by the same ids. Their commit may still come: then the recorded events take the place of the held ones,
   and to record these again does nothing. Until the log answers, to whomever, nothing more is asked of it but that.

2. Announcing (`announce`). A death would cost three commits one after the other: `process-died`, the tick's `effect`,
   its `effect-executing`. Each is a sync of the disk, and the process stays down meanwhile. So the death is held, not
   written; the ticker is woken by the provisional event and decides; its answer is appended, and `append` takes what
   is held along, in front: three events, one sync. `announce` then writes what no answer took along. Recorded order
   and content are those of three commits; only the time on disk differs. If the daemon is killed before that commit,
   nothing of it has happened: the effect had not been begun, and the next start finds the process dead again.

A provisional event needs a `seq`, since folds use it as an order. It is the number after everything recorded and held,
and right only if nothing else is being written at that moment: `announce` therefore waits for the appends that are
under way, and `append`, by which nothing is recorded that survival waits for, begins no other until it is answered:
else a client that appends without a pause would make three commits of one again. Where that takes too long it falls
back to an ordinary append. A wrong guess can't reach the disk, since the writer numbers rows itself, and it can't stay
in a projection: `View` folds provisional events on top of the recorded state and drops that result when the recorded
ones arrive (by id, not by number). For the same reason no checkpoint includes them.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

from pulse_core.model.errors import LogGone, LogUnavailable, Refused
from pulse_core.model.event import Draft, Event, Head
from pulse_core.model.kinds import ConditionCleared, ConditionRaised
from pulse_core.model.moment import US_PER_SECOND, Moment, local_text
from pulse_core.model.payload import encode
from pulse_core.model.text import count, count_kinds
from pulse_core.ports.clock import Clock
from pulse_core.ports.log import EventLog, Listener
from pulse_core.ports.loops import coalesced, wait_within
from pulse_core.projections.conditions import GONE, UNWRITTEN
from pulse_core.record.held import HeldDrafts

LOG = logging.getLogger("pulse.log")
RETRY = 0.5
"""Seconds between two attempts to write while the disk takes nothing, whoever asks: each takes all that is held along."""
PATIENCE = 2.0
"""Seconds for which survival waits for a commit; a disk that takes longer is treated as one that takes nothing."""
HURRY = 0.5
"""Seconds for which what is announced and what survival can spare wait for each other at most."""
CHECK_INTERVAL = 2.0
"""Seconds between two looks whether the log is still there, while nothing is recorded."""
REFUSED_LATELY = 30.0
"""Seconds for which it is told that a request was refused: if nobody asks again, nobody knows whether it would be."""
UNWRITTEN_AFTER = 5 * US_PER_SECOND
"""How long nothing can be written before that is a condition; until then it may be a hiccup."""


class Journal:
    """An `EventLog` that can also hold drafts in memory until the disk takes them.

    recovered is called once writing works again, with a sentence that says for how long it did not. If that lasts, a
    condition is raised, to which rules can react; is_standing, is_gone: whether it is raised that the log can't be written,
    or is gone, by this daemon or the last one.
    hangs: whether the log has not answered in time, and has not since.
    """

    def __init__(
        self,
        log: EventLog,
        clock: Clock,
        new_id: Callable[[], str],
        recovered: Callable[[str], None] = lambda words: None,
    ) -> None:
        self.log, self.clock, self.new_id, self.recovered = log, clock, new_id, recovered
        self.check, self.listen, self.unlisten = log.check, log.listen, log.unlisten
        self.keep = log.keep
        self.since, self.feed = log.since, log.feed
        self.has, self.chain_at = log.has, log.chain_at
        self.is_standing = self.is_gone = self.hangs = False
        self._refused: Moment | None = None
        self._error = self._gone = ""
        self._tried = 0.0
        self._held = HeldDrafts()
        self._guess = 0
        self._holding = asyncio.Event()
        self._listeners: list[Listener] = []
        self._forget: list[Callable[[Sequence[str]], None]] = []
        self._under_way = self._announced = 0
        self._idle, self._all_answered = asyncio.Event(), asyncio.Event()
        """Set while no append is under way, and while nothing that was announced waits for its answer."""
        self._idle.set()
        self._all_answered.set()
        self._free = asyncio.Event()
        """Set while no append takes along what is held: another one waits, and does not write the same rows once more."""
        self._free.set()
        self._awaited: dict[str, Event | None] = {}
        """What is waited for in time, by id, and what has been recorded of it."""
        log.listen(self._on_recorded)

    def _on_recorded(self, events: Sequence[Event]) -> None:
        self.hangs = False  # be it with what nobody waits for any more
        self._awaited.update((event.id, event) for event in events if event.id in self._awaited)

    @property
    def head(self) -> Head:
        return self.log.head

    def listen_to_provisional(self, listener: Listener) -> None:
        """Call back with events that are held; their `seq` is only a guess."""
        self._listeners.append(listener)

    def listen_to_left_out(self, listener: Callable[[Sequence[str]], None]) -> None:
        """Call back with the ids of provisional events that will not be recorded, for want of room."""
        self._forget.append(listener)

    @property
    def refusing(self) -> str:
        """Since when and why requests are refused, in words, if one was a moment ago; also where nothing is held yet."""
        is_lately = (
            self._refused is not None and asyncio.get_running_loop().time() < self._tried + REFUSED_LATELY
        )
        return f"since {local_text(self._refused.at)}: {self._error}" if self._refused and is_lately else ""

    @property
    def left_out(self) -> int:
        """How many of the events since the disk took something will not be recorded."""
        return self._held.left_out.total()

    @property
    def held(self) -> Mapping[str, int]:
        """How many events are held since the disk takes none, by kind; what is announced only waits for its answer."""
        return self._held_kinds() if self._refused or self.hangs else {}

    def _held_kinds(self) -> Mapping[str, int]:
        return Counter(draft.payload.kind for draft in self._held)

    def listen_once(self, listener: Listener) -> None:
        """Call back with each event once: when it is provisional, or else when it is recorded."""
        self._listeners.append(listener)

        def tell(events: Sequence[Event]) -> None:
            listener([event for event in events if event.id not in self._held] if self._held else events)

        self.log.listen(tell)

    async def append(self, *drafts: Draft) -> Sequence[Event]:
        if not self.hangs:
            if not self._all_answered.is_set():  # it is survival's, which this one can wait for
                await wait_within(self._all_answered, HURRY)
            await self._free.wait()
        if self.hangs:
            self._tell_unavailable(False)
            raise LogUnavailable(self._error)
        return await self._append(drafts, None)

    async def append_in_time(self, *drafts: Draft) -> Sequence[Event]:
        """As `append`, but LogUnavailable after PATIENCE; what has an id may be recorded then, and may be held meanwhile."""
        until = asyncio.get_running_loop().time() + PATIENCE
        if not self.hangs:
            await wait_within(self._free, PATIENCE)
        if self.hangs:
            return await self.append(*drafts)  # which raises
        return await self._append(drafts, until - asyncio.get_running_loop().time())

    def with_ids(self, drafts: Iterable[Draft]) -> Sequence[Draft]:
        """The drafts, each with an id."""
        return [draft if draft.id else replace(draft, id=self.new_id()) for draft in drafts]

    async def _append(self, drafts: Sequence[Draft], patience: float | None) -> Sequence[Event]:
        loop = asyncio.get_running_loop()
        if self._refused and not self.hangs and loop.time() < self._tried + RETRY:
            raise LogUnavailable(self._error)
        held = tuple(self._held)
        ids = [draft.id for draft in drafts if patience is not None]
        self._awaited.update(dict.fromkeys(ids))
        self._under_way += 1
        self._idle.clear()
        if held:
            self._free.clear()
        try:
            async with asyncio.timeout(patience):
                events = await self._append_after(held, drafts)
        except TimeoutError:
            events = [event for id_ in ids if (event := self._awaited.get(id_))]
            if not events:  # else they were recorded in the moment in which the time was over
                self.hangs = True
                self._error = f"the log hangs: its disk has not answered for {PATIENCE:g} s"
                self._tell_unavailable(False)
                self._holding.set()
                raise LogUnavailable(self._error) from None
        except LogUnavailable as error:
            self.hangs = False
            self._error, self._tried = str(error), loop.time()
            self._tell_unavailable(isinstance(error, LogGone))
            raise
        finally:
            self._under_way -= 1
            if not self._under_way:
                self._idle.set()
            if held:
                self._free.set()
            for id_ in ids:
                self._awaited.pop(id_, None)
        for draft in held:
            self._held.remove(draft.id)
        if held or events:
            self._tell_available(len(held) + len(self._held))
        return events

    async def _append_after(self, held: Sequence[Draft], drafts: Sequence[Draft]) -> Sequence[Event]:
        """Record what is held, and after it the drafts; the events of these."""
        try:
            return (await self.log.append(*held, *drafts))[len(held) :]
        except Refused:
            if not held:
                raise
        await self._sort_out(held)
        return await self.log.append(*drafts)

    async def _sort_out(self, held: Sequence[Draft]) -> None:
        """Record what is held one by one, and leave out what no log can take: it must not keep out the rest."""
        for draft in held:
            try:
                await self.log.append(draft)
                self._held.remove(draft.id)
            except Refused:
                if draft.id in self._held:
                    self._held.leave_out(draft.id)
                    self._tell_left_out([draft.id])

    def _tell_unavailable(self, gone: bool) -> None:
        now = self.clock.now()
        since = self._refused = self._refused or now
        if gone:
            self._holding.set()  # so that it is checked at once: the check says what became of it
        elif not self.is_standing and now.since(since) >= UNWRITTEN_AFTER:
            self.is_standing = True
            evidence = f"nothing can be recorded since {local_text(since.at)}: {self._error}"
            self.hold(Draft(ConditionRaised(evidence=evidence), UNWRITTEN))

    def _tell_available(self, held: int) -> None:
        if self._refused:
            refused, until = local_text(self._refused.at), local_text(self.clock.now().at)
            self._refused = None
            events = f"{count(held, 'event')} {'was' if held == 1 else 'were'} held"
            words = f"could not be written from {refused} to {until}; {events}"
            if self._held.left_out:
                some = count_kinds(self._held.left_out)
                words += f", and for want of room these were left out: {some} (with {count(self._held.lines, 'line')})"
                self._held.reset_counts()
            self.recovered(words)
        if self.is_standing:
            self.is_standing = False
            self.hold(Draft(ConditionCleared(evidence="the log can be written again"), UNWRITTEN))

    async def append_or_hold(self, *drafts: Draft) -> None:
        """Record the drafts, or hold them if that cannot be done now."""
        drafts = tuple(self.with_ids(drafts))
        try:
            await self.append_in_time(*drafts)
        except LogUnavailable:
            self.hold(*drafts)

    async def announce(self, drafts: Sequence[Draft], answered: Callable[[], Awaitable[None]]) -> None:
        """Publish the drafts at once, and record them with the effects that answer them; `answered` returns when a tick
        has folded them."""
        self._announced += 1
        self._all_answered.clear()
        try:
            if await self._is_alone():
                self._hold(drafts)
                await answered()
                drafts = ()  # unless they were recorded with an answer, they are taken along
            await self.append_or_hold(*drafts)
        finally:
            self._announced -= 1
            if not self._announced:
                self._all_answered.set()

    async def _is_alone(self) -> bool:
        """Whether nothing is held, and nothing is being written any more after HURRY."""
        loop = asyncio.get_running_loop()
        until = loop.time() + HURRY
        while self._under_way and not (self._held or self.hangs) and loop.time() < until:
            await wait_within(self._idle, until - loop.time())
        return not (self._held or self._under_way)

    def hold(self, *drafts: Draft) -> None:
        """Hold the drafts in memory as provisional events, and write them as soon as that is possible."""
        self._holding.set()
        self._hold(drafts)

    def _hold(self, drafts: Sequence[Draft]) -> None:
        """The same for whoever writes them next: looking at the log's files would only delay that."""
        now = self.clock.now()
        held = [
            replace(
                draft,
                id=draft.id or self.new_id(),
                moment=draft.moment or now,
                data=draft.data or encode(draft.payload),
            )
            for draft in drafts
        ]
        if not self._held:
            self._guess = 0
        first = max(self.head.seq + len(self._held), self._guess) + 1
        events = [provisional_event(draft, first + offset) for offset, draft in enumerate(held)]
        self._guess = first + len(held) - 1
        left_out = self._held.add(held)
        for listener in self._listeners:
            listener(events)
        self._tell_left_out(left_out)

    def _tell_left_out(self, ids: Sequence[str]) -> None:
        for forget in self._forget if ids else ():
            forget(ids)

    async def leave(self) -> None:
        """At the end: try once more to record what is held, or leave it to the next start; what is lost is said."""
        if self._held and not self.hangs:
            await asyncio.sleep(RETRY)
            with suppress(LogUnavailable):
                await self.append_in_time()
        why = self._error
        try:
            if await self.log.keep(*self._held):
                return
        except LogUnavailable as error:
            why = str(error)
        if self._held:
            LOG.critical("what could not be recorded is lost: %s; %s", count_kinds(self._held_kinds()), why)

    async def run(self) -> None:
        """Write held drafts as soon as possible, and look whether the log is still there, for ever."""
        looking: asyncio.Future[None] | None = None
        try:
            while True:
                await wait_within(self._holding, coalesced(CHECK_INTERVAL))
                looking = looking or asyncio.ensure_future(self.look())
                # A disk that hangs may not answer that, either.
                await asyncio.wait({looking}, timeout=PATIENCE)
                if looking.done():
                    looking = looking.result()
                if self.hangs or self._held:
                    await asyncio.sleep(RETRY)
                if self.hangs:
                    self._tell_unavailable(False)
                elif not self._held:
                    self._holding.clear()
                    continue
                with suppress(LogUnavailable):
                    await self._write_held()
        finally:
            if looking:
                looking.cancel()

    async def _write_held(self) -> None:
        """Write what is held; where the log hangs, wait for its answer however long it takes."""
        if not self.hangs:
            await self.append_in_time()
            return
        writing = asyncio.ensure_future(self._append((), None))
        try:
            while not writing.done():
                await asyncio.wait({writing}, timeout=RETRY)
                if self.hangs:
                    self._tell_unavailable(False)
            writing.result()
        finally:
            writing.cancel()

    async def look(self) -> None:
        """Look whether the log is still there; if not, that is a condition, and what became of it, too."""
        try:
            await self.log.check()
        except LogGone as error:
            if str(error) != self._gone:
                self._gone, self.is_gone = str(error), True
                self.hold(Draft(ConditionRaised(evidence=self._gone), GONE))
        else:
            if self.is_gone:
                self._gone, self.is_gone = "", False
                self.hold(Draft(ConditionCleared(evidence="the log is where it was"), GONE))


def provisional_event(draft: Draft, seq: int) -> Event:
    """The provisional event of a held draft."""
    assert draft.moment is not None
    text = draft.data or encode(draft.payload)
    kind = draft.payload.kind
    return Event(seq, draft.id, *draft.moment, kind, draft.subject, draft.actor, "", draft.cause, text)
