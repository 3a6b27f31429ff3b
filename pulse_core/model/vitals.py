"""Samples, and the last minute of them as a window."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

from pulse_core.model.event import Draft
from pulse_core.model.json_types import Json
from pulse_core.model.moment import US_PER_SECOND, Moment

MINUTE_US = WINDOW_US = 60 * US_PER_SECOND


class Reading(NamedTuple):
    """The result of a watcher: the sample's data, and the events that it concludes from it."""

    data: Mapping[str, Json]
    conclusions: tuple[Draft, ...] = ()


class Sample(NamedTuple):
    """One reading of one key. `id` grows with time and names the row in vitals.db."""

    id: int
    key: str
    moment: Moment
    data: Mapping[str, Json]

    def spelled(self) -> dict[str, Json]:
        """The sample as JSON values."""
        return {"id": self.id, "key": self.key, **self.moment._asdict(), "data": self.data}


class MinuteRange(NamedTuple):
    """One number of a key over some minutes; `at` is when they began, UTC microseconds.

    field: its path in the sample's data, parts joined by dots, as `memory` or `disks./.used`.
    """

    field: str
    at: int
    low: float
    mean: float
    high: float


class Trimmed(NamedTuple):
    """How much of the vitals was deleted; samples are rolled up to minutes first. fault: why the rest stays, or is lost."""

    samples: int = 0
    ticks: int = 0
    minutes: int = 0
    fault: str = ""


@dataclass(frozen=True, slots=True)
class Window:
    """The last minute of one key's samples, oldest first."""

    samples: tuple[Sample, ...] = ()

    @property
    def last(self) -> Sample | None:
        """The newest sample, if there is one."""
        return self.samples[-1] if self.samples else None

    def values(self, field: str) -> tuple[Json, ...]:
        """One field over time, oldest first, as `memory` or `disks./mnt/x.used`; samples without it are left out."""
        every = [sample.data for sample in self.samples]
        if all(field in data for data in every):  # as nearly always
            return tuple([data[field] for data in every])
        return tuple([value for data in every for value in islice(_fields(data, field), 1)])

    def plus(self, sample: Sample) -> "Window":
        """The window after one more sample: what is older than a minute falls out."""
        kept = (old for old in self.samples if sample.moment.since(old.moment) <= WINDOW_US)
        return Window((*kept, sample))


def _fields(data: Mapping[str, Json], path: str) -> Iterator[Json]:
    """What lies at the end of this path, whose parts are joined by dots and may have some themselves."""
    if path in data:
        yield data[path]
    for name, inner in data.items():
        if isinstance(inner, Mapping) and path.startswith(f"{name}."):
            yield from _fields(inner, path[len(name) + 1 :])


def numbers(data: Mapping[str, Json], path: str) -> Iterator[tuple[str, float]]:
    """Every number in a sample with its way to it; true and false count as 1 and 0."""
    for key, value in data.items():
        name = f"{path}.{key}"
        if isinstance(value, Mapping):
            yield from numbers(value, name)
        elif isinstance(value, int | float):
            yield name, float(value)


def windows_after(windows: Mapping[str, Window], samples: Iterable[Sample]) -> dict[str, Window]:
    """The windows by key after more samples, oldest first; those before do not change."""
    moved = dict(windows)
    for sample in samples:
        moved[sample.key] = moved.get(sample.key, Window()).plus(sample)
    return moved
