"""Readers of what a home has recorded, with or without a running daemon: synchronous, and read-only."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol

from pulse_core.model.event import Event, Head
from pulse_core.model.tick import LayerOutcome, TickRecord
from pulse_core.model.vitals import MinuteRange, Sample


class EventQuery(NamedTuple):
    """Which events: after a row, not before a time (UTC microseconds), of these kinds, about this subject."""

    since_seq: int = 0
    since_at: int | None = None
    kinds: Sequence[str] = ()
    subject: str | None = None


ALL_EVENTS = EventQuery()


class EventReader(Protocol):
    """Reads the event log. Data that was redacted reads as `null`; data that is lost says so (`is_damaged`)."""

    def head(self) -> Head:
        """The last row of the log; row 0 for an empty log."""

    def chain_at(self, seq: int) -> bytes | None:
        """The chain value of one row (of row 0: zeros), or None if there is no such row."""

    def events(
        self, query: EventQuery = ALL_EVENTS, *, limit: int | None = None, newest_first: bool = False
    ) -> Iterator[Event]:
        """The events that match, in order. A caller that pauses between two of them delays no writer."""

    def last_before(self, at: int) -> Event | None:
        """The last event not later than `at` (UTC microseconds), or None."""

    def event(self, name: str) -> Event:
        """The event of this id, or of the only id that begins so, or after `…` ends so. Raises UnknownName or Ambiguous."""


class VitalsReader(Protocol):
    """Reads samples and tick records; vitals that are missing or unusable read as empty.

    fault: why something could not be read by now, in words; empty if all could, or there are none yet.
    """

    @property
    def fault(self) -> str: ...

    def last_samples(self) -> Sequence[Sample]:
        """The newest sample of each key, by key."""

    def samples(self, ids: Sequence[int]) -> Sequence[Sample]:
        """The samples of these ids that are still there, by id."""

    def between(self, after: int, upto: int, key: str | None = None) -> Sequence[Sample]:
        """Samples later than `after` and not later than `upto` (UTC microseconds), oldest first; of one key or all."""

    def oldest_sample(self) -> int:
        """When the oldest sample was taken that is not rolled up (UTC microseconds); 0 if there is none."""

    def minute_ranges(self, key: str, after: int, upto: int, step: int = 1) -> Sequence[MinuteRange]:
        """What is left of older samples of a key in that time, by field and time, `step` minutes together."""

    def sample_keys(self) -> Sequence[str]:
        """The keys of all samples, also of those that are rolled up, in order."""

    def tick(self, number: int) -> TickRecord | None:
        """One tick's record, or None if it is not there (any more)."""

    def tick_before(self, at: int) -> TickRecord | None:
        """The last tick that was not later than this (UTC microseconds), or None."""

    def snapshot_before(self, at: int) -> str | None:
        """The object with the newest kept snapshot not later than this (UTC microseconds), or None."""

    def ticks(self, limit: int) -> Sequence[TickRecord]:
        """The last so many ticks, newest first."""

    def ticks_since(self, at: int) -> Sequence[TickRecord]:
        """The ticks later than this (UTC microseconds), oldest first."""

    def ticks_after(self, number: int, limit: int) -> Sequence[TickRecord]:
        """At most so many ticks behind this one, oldest first."""

    def layers_since(self, at: int) -> Iterator[tuple[int, Sequence[LayerOutcome]]]:
        """What each tick later than this (UTC microseconds) took (microseconds), and its layers, oldest first."""

    def tick_count(self) -> int:
        """The last tick's number."""


class ObjectReader(Protocol):
    """Reads the immutable blobs, which are named by their SHA-256 in hex."""

    def read(self, name: str) -> bytes | None:
        """The blob of this name, or None; raises Damaged if it is not what was stored."""

    def exists(self, name: str) -> bool:
        """Whether there is a blob of this name, sound or not."""
