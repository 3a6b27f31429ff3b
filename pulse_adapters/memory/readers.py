"""Reading what the stores in memory hold, as other processes read the files of a home."""

from collections.abc import Iterator, Sequence
from types import TracebackType

from pulse_adapters.memory.log import MemoryLog
from pulse_adapters.memory.stores import MemoryObjects, MemoryVitals
from pulse_core.model.errors import Ambiguous, UnknownName
from pulse_core.model.event import Event, Head
from pulse_core.model.tick import LayerOutcome, TickRecord
from pulse_core.model.vitals import MINUTE_US, Minute, MinuteRange, Sample
from pulse_core.ports.readers import ALL_EVENTS, EventQuery


class _Opened:
    """What is open as long as anybody likes."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass


class MemoryEventReader(_Opened):
    """Implements `pulse_core.ports.readers.EventReader` on a `MemoryLog`."""

    def __init__(self, log: MemoryLog) -> None:
        self._log = log

    def __enter__(self) -> "MemoryEventReader":
        return self

    def head(self) -> Head:
        return self._log.head

    def chain_at(self, seq: int) -> bytes | None:
        return self._log.chains[seq] if 0 <= seq < len(self._log.chains) else None

    def events(
        self, query: EventQuery = ALL_EVENTS, *, limit: int | None = None, newest_first: bool = False
    ) -> Iterator[Event]:
        found = [event for event in self._log.events[query.since_seq :] if _matches(event, query)]
        ordered = found[::-1] if newest_first else found
        yield from ordered if limit is None else ordered[: max(0, limit)]

    def last_before(self, at: int) -> Event | None:
        return next((event for event in reversed(self._log.events) if event.at <= at), None)

    def event(self, name: str) -> Event:
        found = [event for event in self._log.events if name and event.id.startswith(name)]
        if not found:
            raise UnknownName("event", name, ())
        exact = [event for event in found if event.id == name]
        if len(found) > 1 and not exact:
            raise Ambiguous("event", name, [event.id for event in found[:4]])
        return (exact or found)[0]


def _matches(event: Event, query: EventQuery) -> bool:
    return (
        (query.since_at is None or event.at >= query.since_at)
        and (not query.kinds or event.kind in query.kinds)
        and (query.subject is None or event.subject == query.subject)
    )


class MemoryVitalsReader(_Opened):
    """Implements `pulse_core.ports.readers.VitalsReader` on `MemoryVitals`, whatever was flushed."""

    def __init__(self, vitals: MemoryVitals) -> None:
        self._vitals = vitals

    def __enter__(self) -> "MemoryVitalsReader":
        return self

    @property
    def _samples(self) -> Sequence[Sample]:
        return list(self._vitals.kept_samples.values())

    @property
    def _ticks(self) -> Sequence[TickRecord]:
        ticks = self._vitals.kept_ticks
        return [ticks[number] for number in sorted(ticks)]

    def last_samples(self) -> Sequence[Sample]:
        newest = {sample.key: sample for sample in self._samples}
        return [newest[key] for key in sorted(newest)]

    def samples(self, ids: Sequence[int]) -> Sequence[Sample]:
        return [sample for sample in self._samples if sample.id in ids]

    def between(self, after: int, upto: int, key: str | None = None) -> Sequence[Sample]:
        found = (sample for sample in self._samples if after < sample.moment.at <= upto)
        return [sample for sample in found if key in (None, sample.key)]

    def oldest_sample(self) -> int:
        return min((sample.moment.at for sample in self._samples), default=0)

    def minute_ranges(self, key: str, after: int, upto: int, step: int = 1) -> Sequence[MinuteRange]:
        groups: dict[tuple[str, int], list[Minute]] = {}
        for minute in self._vitals.kept_minutes.values():
            if minute.key == key and after <= minute.at < upto:
                groups.setdefault((minute.field, minute.at // MINUTE_US // max(1, step)), []).append(minute)
        return [_range_of(groups[place]) for place in sorted(groups)]

    def sample_keys(self) -> Sequence[str]:
        minutes = {minute.key for minute in self._vitals.kept_minutes.values()}
        return sorted(minutes | {sample.key for sample in self._samples})

    def tick(self, number: int) -> TickRecord | None:
        return self._vitals.kept_ticks.get(number)

    def tick_before(self, at: int) -> TickRecord | None:
        return next((tick for tick in reversed(self._ticks) if tick.moment.at <= at), None)

    def snapshot_before(self, at: int) -> str | None:
        kept = (tick.snapshot for tick in reversed(self._ticks) if tick.moment.at <= at)
        return next((snapshot for snapshot in kept if snapshot), None)

    def ticks(self, limit: int) -> Sequence[TickRecord]:
        return self._ticks[::-1][:limit]

    def ticks_since(self, at: int) -> Sequence[TickRecord]:
        return [tick for tick in self._ticks if tick.moment.at > at]

    def ticks_after(self, number: int, limit: int) -> Sequence[TickRecord]:
        return [tick for tick in self._ticks if tick.tick > number][:limit]

    def layers_since(self, at: int) -> Iterator[tuple[int, Sequence[LayerOutcome]]]:
        yield from ((tick.took_us, tick.layers) for tick in self.ticks_since(at))

    def tick_count(self) -> int:
        return max(self._vitals.kept_ticks, default=0)


def _range_of(minutes: Sequence[Minute]) -> MinuteRange:
    """The minutes of one field together."""
    first = min(minutes, key=lambda minute: minute.at)
    count = sum(minute.samples for minute in minutes)
    mean = sum(minute.mean * minute.samples for minute in minutes) / count
    low, high = min(minute.low for minute in minutes), max(minute.high for minute in minutes)
    return MinuteRange(first.field, first.at, low, mean, high)


class MemoryObjectReader:
    """Implements `pulse_core.ports.readers.ObjectReader` on `MemoryObjects`."""

    def __init__(self, objects: MemoryObjects) -> None:
        self._objects = objects

    def read(self, name: str) -> bytes | None:
        return self._objects.blobs.get(name)

    def exists(self, name: str) -> bool:
        return name in self._objects.blobs
