"""Vitals, objects and checkpoints in dictionaries."""

from collections.abc import Mapping, Sequence
from hashlib import sha256

from pulse_core.model.event import Checkpoint
from pulse_core.model.json_types import Json
from pulse_core.model.moment import Moment
from pulse_core.model.tick import TickRecord
from pulse_core.model.vitals import MINUTE_US, Sample, Trimmed


class MemoryVitals:
    """Implements `pulse_core.ports.Vitals`; keeps the newest `kept` samples and ticks, queued or flushed."""

    def __init__(self, kept: int = 10_000) -> None:
        self.kept, self.trouble = kept, ""
        self.kept_samples: dict[int, Sample] = {}
        self.kept_ticks: dict[int, TickRecord] = {}
        self._queued: tuple[set[int], set[int]] = set(), set()
        self.kept_minutes: set[tuple[str, int]] = set()
        """The key and the beginning of each minute whose samples are gone."""
        self._next = 1

    def sample(self, key: str, moment: Moment, data: Mapping[str, Json]) -> Sample:
        sample = self.kept_samples[self._next] = Sample(self._next, key, moment, dict(data))
        self._queued[0].add(self._next)
        self._next += 1
        if len(self.kept_samples) > self.kept:
            del self.kept_samples[next(iter(self.kept_samples))]
        return sample

    def record(self, tick: TickRecord) -> None:
        self.kept_ticks[tick.tick] = tick
        self._queued[1].add(tick.tick)
        if len(self.kept_ticks) > self.kept:
            del self.kept_ticks[next(iter(self.kept_ticks))]

    async def flush(self) -> None:
        self._queued = set(), set()

    def forget(self) -> None:
        (samples, ticks), self._queued = self._queued, (set(), set())
        for id_ in samples:
            self.kept_samples.pop(id_, None)
        for number in ticks:
            self.kept_ticks.pop(number, None)

    async def trim(self, before_at: int, minutes_before: int = 0) -> Trimmed:
        whole = before_at // MINUTE_US * MINUTE_US
        old = [id_ for id_, sample in self.kept_samples.items() if sample.moment.at < whole]
        old_ticks = [tick for tick in self.kept_ticks.values() if tick.moment.at < before_at]
        kept = [tick.tick for tick in old_ticks if tick.snapshot and tick.moment.at >= minutes_before][
            -1_000:
        ]
        ticks = [tick.tick for tick in old_ticks if tick.tick not in kept]
        for sample in [self.kept_samples.pop(id_) for id_ in old]:
            self.kept_minutes.add((sample.key, sample.moment.at // MINUTE_US * MINUTE_US))
        for number in ticks:
            del self.kept_ticks[number]
        over = {place for place in self.kept_minutes if place[1] < minutes_before // MINUTE_US * MINUTE_US}
        self.kept_minutes -= over
        return Trimmed(len(old), len(ticks), len(over))

    async def samples(self, ids: Sequence[int]) -> Sequence[Sample]:
        return [self.kept_samples[id_] for id_ in sorted(set(ids)) if id_ in self.kept_samples]

    async def recent(self, after: int) -> Sequence[Sample]:
        return [sample for sample in self.kept_samples.values() if sample.moment.at > after]

    async def newest(self, key: str, field: str) -> Sample | None:
        samples = reversed(self.kept_samples.values())
        return next((one for one in samples if one.key == key and field in one.data), None)

    async def ticks(self, last: int) -> Sequence[TickRecord]:
        return [self.kept_ticks[tick] for tick in sorted(self.kept_ticks)[-last:]] if last > 0 else []


class MemoryObjects:
    """Implements `pulse_core.ports.Objects`."""

    def __init__(self) -> None:
        self.blobs: dict[str, bytes] = {}

    async def put(self, blob: bytes) -> str:
        name = sha256(blob).hexdigest()
        self.blobs[name] = blob
        return name

    async def get(self, name: str) -> bytes | None:
        return self.blobs.get(name)


class MemoryCheckpoints:
    """Implements `pulse_core.ports.Checkpoints`."""

    def __init__(self) -> None:
        self.kept: dict[str, Checkpoint] = {}

    async def load(self) -> Mapping[str, Checkpoint]:
        return dict(self.kept)

    async def save(self, checkpoints: Mapping[str, Checkpoint]) -> None:
        self.kept.update(checkpoints)
