"""The stores beside the log: vitals, objects, checkpoints. All but objects may be deleted at any time."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import NamedTuple, Protocol

from pulse_core.model.event import Checkpoint
from pulse_core.model.json_types import Json
from pulse_core.model.moment import Moment
from pulse_core.model.tick import TickRecord
from pulse_core.model.vitals import Sample, Trimmed


class Vitals(Protocol):
    """Samples and tick records. Writes are queued in memory and flushed later.

    trouble: why what was flushed last is lost, in words; empty if it is not.
    """

    trouble: str

    def sample(self, key: str, moment: Moment, data: Mapping[str, Json]) -> Sample:
        """A new sample with the next id, queued for writing. Never blocks, never raises."""

    def record(self, tick: TickRecord) -> None:
        """Queue a tick record; the same tick again replaces it. Never blocks, never raises."""

    async def flush(self) -> None:
        """Write what is queued; what cannot be written is dropped, since vitals may be lost."""

    def forget(self) -> None:
        """Drop what is queued. Never blocks, never raises."""

    async def trim(self, before_at: int, minutes_before: int = 0) -> Trimmed:
        """Delete what is older than these (UTC microseconds): samples and ticks, and minutes.

        Samples are rolled up to minutes first, so only whole minutes go. The newest 1,000 of the ticks whose snapshot
        was kept stay as long as minutes do. Nothing else waits for it.
        """

    async def samples(self, ids: Sequence[int]) -> Sequence[Sample]:
        """The samples with these ids that are still there, by id."""

    async def recent(self, after: int) -> Sequence[Sample]:
        """Samples whose `at` is later than this (UTC microseconds), by id."""

    async def newest(self, key: str, field: str) -> Sample | None:
        """The newest sample of this key whose data has this field; None if there is none."""

    async def ticks(self, last: int) -> Sequence[TickRecord]:
        """The last so many tick records, oldest first."""


class Objects(Protocol):
    """Immutable blobs named by their SHA-256 in hex; on disk before `put` returns."""

    async def put(self, blob: bytes) -> str: ...

    async def get(self, name: str) -> bytes | None: ...


class SweepResult(NamedTuple):
    """What was deleted: unreferenced objects, other unused files, and the bytes of both."""

    objects: int = 0
    files: int = 0
    bytes: int = 0


Sweep = Callable[[], Awaitable[SweepResult]]
"""Deletes unused files of the home. Safe while the daemon runs."""


class Checkpoints(Protocol):
    """A cache of projection states; deleting it costs only time."""

    async def load(self) -> Mapping[str, Checkpoint]:
        """All checkpoints by the projection's name; none if the cache is missing or unreadable."""

    async def save(self, checkpoints: Mapping[str, Checkpoint]) -> None:
        """Replace these checkpoints, all together."""
