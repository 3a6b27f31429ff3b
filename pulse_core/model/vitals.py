"""What was sensed: samples, and the last minute of them as a window."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from pulse_core.model.event import Draft
from pulse_core.model.moment import US_PER_SECOND, Moment
from pulse_core.model.payload import Json

WINDOW_US = 60 * US_PER_SECOND


class Reading(NamedTuple):
    """What a watcher brings back: the sample's data, and what it concludes from it (events)."""

    data: Mapping[str, Json]
    conclusions: tuple[Draft, ...] = ()


class Sample(NamedTuple):
    """One reading of one key. `id` grows with time and names the row in vitals.db."""

    id: int
    key: str
    moment: Moment
    data: Mapping[str, Json]


@dataclass(frozen=True, slots=True)
class Window:
    """The last minute of one key's samples, oldest first."""

    samples: tuple[Sample, ...] = ()

    @property
    def last(self) -> Sample | None:
        """The newest sample, if there is one."""
        return self.samples[-1] if self.samples else None

    def values(self, field: str) -> tuple[Json, ...]:
        """One field over time, oldest first; samples without it are passed over."""
        return tuple(sample.data[field] for sample in self.samples if field in sample.data)

    def plus(self, sample: Sample) -> "Window":
        """The window after one more sample: what is older than a minute falls out."""
        kept = (old for old in self.samples if sample.moment.since(old.moment) <= WINDOW_US)
        return Window((*kept, sample))
