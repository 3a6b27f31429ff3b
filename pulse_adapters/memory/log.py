"""An event log in a list."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from hashlib import sha256

from pulse_core.model.errors import Conflict, LogGone, Refused
from pulse_core.model.event import NO_CHAIN, Draft, Event, Head
from pulse_core.model.kinds import EventRedacted
from pulse_core.model.moment import Moment
from pulse_core.model.payload import encode
from pulse_core.model.stored_data import REDACTED
from pulse_core.ports.clock import Clock
from pulse_core.ports.log import Listener

BATCH = 2_000


class MemoryLog:
    """Implements `pulse_core.ports.EventLog`.

    commit: awaited before each commit, to take time, or raise LogUnavailable, as a disk would; committed:
    awaited after it, before anybody is told. While `deaf` nothing is taken, as when the writer is dead; once `gone` says
    why, the log is one whose file was deleted.
    """

    def __init__(
        self, clock: Clock, host: str = "memory", commit: Callable[[], Awaitable[None]] | None = None
    ) -> None:
        self.clock, self.host, self.commit = clock, host, commit
        self.committed: Callable[[], Awaitable[None]] | None = None
        self.events: list[Event] = []
        self.chains = [NO_CHAIN]
        self._digests: list[bytes] = []
        self._ids: dict[str, int] = {}
        self._listeners: list[Listener] = []
        self._made = 0
        self._turn = asyncio.Lock()
        self.deaf = False
        self.gone = ""
        self._commits: set[asyncio.Future[Sequence[Event]]] = set()

    @property
    def head(self) -> Head:
        return Head(len(self.events), self.chains[-1])

    def listen(self, listener: Listener) -> None:
        self._listeners.append(listener)

    def unlisten(self, listener: Listener) -> None:
        self._listeners.remove(listener)

    def forget_listeners(self) -> None:
        """Tell nobody any more, as when the listeners' process is dead."""
        self._listeners.clear()
        self._listeners = []  # a commit that is under way has the old list, and tells nobody who comes later

    async def break_off(self) -> None:
        """End the commits that are under way, as the death of the writer does: what is not in the log never will be."""
        for commit in self._commits:
            commit.cancel()
        if self._commits:
            await asyncio.wait(self._commits)

    async def check(self) -> None:
        if self.gone:
            raise LogGone(self.gone)

    async def keep(self, *drafts: Draft) -> bool:
        return False  # nothing of this log outlives its process

    async def append(self, *drafts: Draft) -> Sequence[Event]:
        if self.deaf:
            raise asyncio.CancelledError
        if not drafts:
            return ()
        drafts = tuple(self._with_digest(draft) for draft in drafts)
        texts = [_written(draft) for draft in drafts]
        # As on disk, a caller that is cancelled does not undo its commit; only death does, until it is there.
        commit = asyncio.ensure_future(self._committed(drafts, texts))
        self._commits.add(commit)
        commit.add_done_callback(self._commits.discard)
        return await asyncio.shield(commit)

    async def _committed(self, drafts: Sequence[Draft], texts: Sequence[str]) -> Sequence[Event]:
        told = self._listeners
        async with self._turn:
            known = [self._recorded(draft, text) for draft, text in zip(drafts, texts, strict=True)]
            await self.check()
            if self.commit:
                await self.commit()
            if self.deaf:
                raise asyncio.CancelledError
            events = [
                old or self._row(draft, text) for draft, text, old in zip(drafts, texts, known, strict=True)
            ]
            if self.committed:
                await self.committed()
            fresh = [event for event, old in zip(events, known, strict=True) if old is None]
            for listener in tuple(told) if fresh else ():
                listener(fresh)
            return events

    def _recorded(self, draft: Draft, text: str) -> Event | None:
        seq = self._ids.get(draft.id)
        if seq is None:
            return None
        event = self.events[seq - 1]
        same = (event.kind, event.subject, event.actor, event.cause, event.data)
        if same != (draft.payload.kind, draft.subject, draft.actor, draft.cause, text):
            raise Conflict(f"event {draft.id} is recorded with another content")
        return event

    def _row(self, draft: Draft, text: str) -> Event:
        self._made += 1
        moment = draft.moment or self.clock.now()
        id_ = draft.id or f"made-{self._made:08}"
        event = Event(
            len(self.events) + 1, id_, *moment, draft.payload.kind, draft.subject, draft.actor,
            self.host, draft.cause, text,
        )  # fmt: skip
        self.events.append(event)
        self._digests.append(sha256(text.encode()).digest())
        self._ids[id_] = event.seq
        self.chains.append(sha256(self.chains[-1] + repr(event).encode()).digest())
        if isinstance(draft.payload, EventRedacted):
            place = self._ids[draft.subject] - 1
            self.events[place] = self.events[place]._replace(data=REDACTED)
        return event

    def _with_digest(self, draft: Draft) -> Draft:
        if not isinstance(draft.payload, EventRedacted):
            return draft
        seq = self._ids.get(draft.subject)
        if not seq:
            return draft.payload.completed(draft, "", b"", is_empty=False)
        event, is_asked_again = self.events[seq - 1], draft.id in self._ids
        is_empty = event.data == REDACTED and not is_asked_again
        return draft.payload.completed(draft, event.kind, self._digests[seq - 1], is_empty)

    async def since(
        self, seq: int, kinds: Collection[str] | None = None, upto: int | None = None
    ) -> AsyncIterator[Sequence[Event]]:
        last = len(self.events) if upto is None else min(upto, len(self.events))
        for first in range(seq, last, BATCH):
            batch = self.events[first : min(first + BATCH, last)]
            if wanted := [event for event in batch if kinds is None or event.kind in kinds]:
                yield wanted

    async def feed(
        self,
        take: Callable[[Sequence[Event]], None],
        seq: int,
        kinds: Collection[str] | None = None,
        upto: int | None = None,
    ) -> None:
        async for events in self.since(seq, kinds, upto):
            take(events)

    async def has(self, id_: str) -> bool:
        return id_ in self._ids

    async def chain_at(self, seq: int) -> bytes | None:
        return self.chains[seq] if 0 <= seq < len(self.chains) else None


def _written(draft: Draft) -> str:
    """The payload's text; raises Refused for what a row on disk could not hold."""
    text = draft.data or encode(draft.payload)
    columns = (draft.subject, draft.actor, draft.id, draft.cause or "")
    moment = draft.moment or Moment(0, "", 0)
    try:
        broken = "\0" in "".join(columns).encode().decode()
    except UnicodeError:
        broken = True
    if broken:
        raise Refused(
            f"{draft.payload.kind}: its id, subject, cause or actor holds a NUL or half a character"
        )
    if not all(-(1 << 63) <= part < 1 << 63 for part in (moment.at, moment.mono)):
        raise Refused(f"{draft.payload.kind}: its moment is beyond 64 bits")
    return text
