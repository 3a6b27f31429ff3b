"""Numbers over time out of samples: which there are, and one of them as a series."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from pulse_core.app.context import HomeContext
from pulse_core.model.errors import PulseError, UnknownName
from pulse_core.model.vitals import numbers
from pulse_core.ports.readers import VitalsReader

MINUTE = 60_000_000
POINTS = 1_000
"""About how many points of a series stand for the time whose samples are rolled up to minutes."""


class Point(NamedTuple):
    """A value at a time, UTC microseconds; one that stands for several samples is their mean, between two bounds."""

    at: int
    value: float
    low: float
    high: float


class Series(NamedTuple):
    """One number over time, oldest first; `name` is the sense's key and the way to the field, joined by dots."""

    name: str
    points: Sequence[Point]


def all_series(home: HomeContext, after: int, upto: int, of: str | None = None) -> list[Series]:
    """Every number of every sense, or of one, in that time (UTC microseconds), by name."""
    found: dict[str, list[Point]] = {}
    with home.vitals() as vitals:
        for key in [of] if of else vitals.sample_keys():
            for name, point in rolled_up(vitals, key, after, upto):
                found.setdefault(name, []).append(point)
        for sample in vitals.between(after, upto, of):
            for name, value in numbers(sample.data, sample.key):
                found.setdefault(name, []).append(Point(sample.moment.at, value, value, value))
    return [Series(name, points) for name, points in sorted(found.items())]


def rolled_up(vitals: VitalsReader, key: str, after: int, upto: int) -> Iterator[tuple[str, Point]]:
    """What is left of older samples of a sense."""
    step = (upto - after) // (POINTS * MINUTE)
    for row in vitals.minute_ranges(key, after, upto, step):
        yield f"{key}.{row.field}", Point(row.at, row.mean, row.low, row.high)


def nothing_sensed(home: HomeContext) -> str:
    """Why nothing is known of a time, in words."""
    with home.vitals() as vitals:
        vitals.last_samples()
        words = "nothing was sensed in that time; choose a longer --since, or see: upulse daemon status"
        return vitals.fault or words


def series(home: HomeContext, name: str, after: int, upto: int) -> list[Series]:
    """One number over time, or all whose names begin with this one and a dot.

    Raises UnknownName with the nearest there is, or says that nothing was sensed.
    """
    with home.vitals() as vitals:  # the names of senses may have dots themselves
        keys = [
            key
            for key in vitals.sample_keys()
            if f"{name}.".startswith(f"{key}.") or key.startswith(f"{name}.")
        ]
    found = [one for key in keys for one in all_series(home, after, upto, key)]
    exact = [one for one in found if one.name == name]
    if some := exact or [one for one in sorted(found) if one.name.startswith(f"{name}.")]:
        return some
    known = [one.name for one in all_series(home, after, upto)]
    if not known:
        raise PulseError(nothing_sensed(home))
    raise UnknownName("vital", name, known)


def vital_names(home: HomeContext) -> Iterator[str]:
    """Every number of the last samples."""
    with home.vitals() as reader:
        for sample in reader.last_samples():
            yield from (name for name, _ in numbers(sample.data, sample.key))
