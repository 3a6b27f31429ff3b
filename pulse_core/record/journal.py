"""The event log as the daemon uses it: it can hold events in memory until the disk takes them.

Theory. An event is *recorded* when its commit is on disk, and *provisional* while the journal alone holds it. Two
situations need provisional events, and both follow from one rule: survival must not wait for the disk.

1. The disk takes nothing. What watchers conclude and what survival wishes is held, projections count it in, and the
   executor acts on it, if the action bears repetition. Held events are written first and in order, with the times at
   which they happened. Nobody outside is told that they are recorded.

2. Announcing (`announce`). A death would cost three commits one after the other: `process-died`, the tick's `effect`,
   its `effect-executing`. Each is a sync of the disk, and the process stays down meanwhile. So the death is held, not
   written; the ticker is woken by the provisional event and decides; its answer is appended, and `append` takes what
   is held along, in front: three events, one sync. `announce` then writes what no answer took along. Recorded order
   and content are those of three commits; only the time on disk differs. If the daemon is killed before that commit,
   nothing of it has happened: the effect had not been begun, and the next start finds the process dead again.

A provisional event needs a `seq`, since folds use it as an order. It is the number after everything recorded and held,
and right only if nothing else is being written at that moment: `announce` therefore falls back to an ordinary append
while any append is under way. A wrong guess can't reach the disk, since the writer numbers rows itself, and it can't
stay in a projection: `View` folds provisional events on top of the recorded state and drops that result when the
recorded ones arrive (by id, not by number). For the same reason no checkpoint includes them.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

from pulse_core.model.errors import LogUnavailable
from pulse_core.model.event import Draft, Event, Head
from pulse_core.model.kinds import ConditionCleared, ConditionRaised
from pulse_core.model.moment import US_PER_SECOND, Moment, iso
from pulse_core.model.payload import encode
from pulse_core.ports.clock import Clock
from pulse_core.ports.log import EventLog, Listener
from pulse_core.projections.conditions import UNWRITTEN

MAX_HELD = 1_000
RETRY = 0.5
UNWRITTEN_AFTER = 5 * US_PER_SECOND
"""How long nothing can be written before that is a condition; until then it may be a hiccup."""


class Journal:
    """An `EventLog` that can also hold drafts in memory until the disk takes them.

    recovered is called once writing works again, with a sentence that says for how long it did not. If that lasts, a
    condition is raised, to which rules can react; is_standing: whether it is raised, by this daemon or the last one.
    """

    def __init__(
        self,
        log: EventLog,
        clock: Clock,
        new_id: Callable[[], str],
        recovered: Callable[[str], None] = lambda words: None,
    ) -> None:
        self.log, self.clock, self.new_id, self.recovered = log, clock, new_id, recovered
        self.listen, self.unlisten, self.since, self.chain_at = (
            log.listen,
            log.unlisten,
            log.since,
            log.chain_at,
        )
        self.is_standing = False
        self._refused: Moment | None = None
        self._held: dict[str, Draft] = {}
        self._holding = asyncio.Event()
        self._listeners: list[Listener] = []
        self._under_way = 0

    @property
    def head(self) -> Head:
        return self.log.head

    def listen_to_provisional(self, listener: Listener) -> None:
        """Call back with events that are held; their `seq` is only a guess."""
        self._listeners.append(listener)

    def listen_once(self, listener: Listener) -> None:
        """Call back with each event once: when it is provisional, or else when it is recorded."""
        self._listeners.append(listener)
        self.log.listen(lambda events: listener([event for event in events if event.id not in self._held]))

    async def append(self, *drafts: Draft) -> Sequence[Event]:
        held = tuple(self._held.values())
        self._under_way += 1
        try:
            events = await self.log.append(*held, *drafts)
        except LogUnavailable as error:
            since = self._refused = self._refused or self.clock.now()
            if not self.is_standing and self.clock.now().since(since) >= UNWRITTEN_AFTER:
                self.is_standing = True
                evidence = f"nothing can be recorded since {iso(since.at)}: {error}"
                self.hold(Draft(ConditionRaised(evidence=evidence), UNWRITTEN))
            raise
        finally:
            self._under_way -= 1
        for draft in held:
            self._held.pop(draft.id, None)
        if self._refused and events:
            refused, until, self._refused = iso(self._refused.at), iso(self.clock.now().at), None
            self.recovered(f"could not be written from {refused} to {until}; {len(held)} events were held")
        if self.is_standing and events:
            self.is_standing = False
            self.hold(Draft(ConditionCleared(evidence="the log can be written again"), UNWRITTEN))
        return events[len(held) :]

    async def append_or_hold(self, *drafts: Draft) -> None:
        """Record the drafts, or hold them if that cannot be done now; raises LogUnavailable if too many are."""
        try:
            await self.append(*drafts)
        except LogUnavailable:
            if len(self._held) + len(drafts) > MAX_HELD:
                raise
            self.hold(*drafts)

    async def announce(self, drafts: Sequence[Draft], answered: Callable[[], Awaitable[None]]) -> None:
        """Publish the drafts at once, and record them with the effects that answer them; `answered` returns when a tick
        has folded them."""
        if self._held or self._under_way:
            await self.append_or_hold(*drafts)
            return
        self.hold(*drafts)
        await answered()
        await self.append_or_hold()  # unless they were recorded with an answer

    def hold(self, *drafts: Draft) -> None:
        """Hold the drafts in memory as provisional events."""
        now = self.clock.now()
        held = [replace(draft, id=draft.id or self.new_id(), moment=draft.moment or now) for draft in drafts]
        first = self.head.seq + len(self._held) + 1
        events = [provisional_event(draft, first + offset) for offset, draft in enumerate(held)]
        self._held.update((draft.id, draft) for draft in held)
        self._holding.set()
        for listener in self._listeners:
            listener(events)

    async def run(self) -> None:
        """Write held drafts as soon as possible, for ever."""
        while True:
            await self._holding.wait()
            await asyncio.sleep(RETRY)
            if not self._held:
                self._holding.clear()
                continue
            try:
                await self.append()
            except LogUnavailable:
                continue


def provisional_event(draft: Draft, seq: int) -> Event:
    """The provisional event of a held draft."""
    assert draft.moment is not None
    text = draft.data or encode(draft.payload)
    kind = draft.payload.kind
    return Event(seq, draft.id, *draft.moment, kind, draft.subject, draft.actor, "", draft.cause, text)
