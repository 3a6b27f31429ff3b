"""The event log: the single source of truth."""

from collections.abc import AsyncIterator, Callable, Collection, Sequence
from typing import Protocol

from pulse_core.model.event import Draft, Event, Head

Listener = Callable[[Sequence[Event]], None]


class EventLog(Protocol):
    """Append-only. `append` is atomic: all of its events are on disk when it returns, or none ever will be."""

    @property
    def head(self) -> Head:
        """The last recorded row."""

    async def append(self, *drafts: Draft) -> Sequence[Event]:
        """Record the drafts in order, together; many callers may share one commit.

        A draft whose id is recorded already with the same content yields the recorded event. Raises
        Conflict if the content differs, Refused if a payload is not valid, LogUnavailable if the disk
        does not take it, LogGone if it would be lost; then nothing of this call is recorded. Cancelling
        the caller does not undo it. An `event-redacted` empties the data of the event that is its
        subject, in the same commit.
        """

    async def check(self) -> None:
        """Raise LogGone if what is recorded would not be found by the next start; its message says what became of it."""

    async def keep(self, *drafts: Draft) -> bool:
        """Leave these to the next start, where the log is gone and its rows are saved; otherwise does nothing, and False.

        To be called at the end. Raises LogUnavailable.
        """

    def listen(self, listener: Listener) -> None:
        """Call back with newly recorded events, in order, once they are on disk and before `append` returns."""

    def unlisten(self, listener: Listener) -> None:
        """Call this listener no more."""

    def since(
        self, seq: int, kinds: Collection[str] | None = None, upto: int | None = None
    ) -> AsyncIterator[Sequence[Event]]:
        """Events after `seq` (and up to `upto`, inclusive) in order, in batches; only `kinds` if given."""

    async def feed(
        self,
        take: Callable[[Sequence[Event]], None],
        seq: int,
        kinds: Collection[str] | None = None,
        upto: int | None = None,
    ) -> None:
        """Have `take` called with these batches, one after the other, in a thread that may be another one."""

    async def has(self, id_: str) -> bool:
        """Whether an event with this id is recorded."""

    async def chain_at(self, seq: int) -> bytes | None:
        """The chain value of one row (32 bytes; of row 0: zeros), or None if there is no such row."""
