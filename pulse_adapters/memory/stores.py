"""Vitals, objects and checkpoints in dictionaries."""

from collections.abc import Mapping, Sequence
from hashlib import sha256

from pulse_core.model.moment import Moment
from pulse_core.model.payload import Json
from pulse_core.model.tick import TickRecord
from pulse_core.model.vitals import Sample
from pulse_core.ports import Checkpoint


class MemoryVitals:
    """Implements `pulse_core.ports.Vitals`; keeps the newest `kept` samples and ticks."""

    def __init__(self, kept: int = 10_000) -> None:
        self.kept = kept
        self._samples: dict[int, Sample] = {}
        self._ticks: dict[int, TickRecord] = {}
        self._next = 1

    def sample(self, key: str, moment: Moment, data: Mapping[str, Json]) -> Sample:
        sample = self._samples[self._next] = Sample(self._next, key, moment, dict(data))
        self._next += 1
        if len(self._samples) > self.kept:
            del self._samples[next(iter(self._samples))]
        return sample

    def record(self, tick: TickRecord) -> None:
        self._ticks[tick.tick] = tick
        if len(self._ticks) > self.kept:
            del self._ticks[next(iter(self._ticks))]

    async def flush(self) -> None:
        return None

    async def trim(self, before_at: int) -> None:
        self._samples = {id_: one for id_, one in self._samples.items() if one.moment.at >= before_at}
        self._ticks = {number: one for number, one in self._ticks.items() if one.moment.at >= before_at}

    async def samples(self, ids: Sequence[int]) -> Sequence[Sample]:
        return [self._samples[id_] for id_ in sorted(set(ids)) if id_ in self._samples]

    async def recent(self, after: int) -> Sequence[Sample]:
        return [sample for sample in self._samples.values() if sample.moment.at > after]

    async def ticks(self, last: int) -> Sequence[TickRecord]:
        return [self._ticks[tick] for tick in sorted(self._ticks)[-last:]] if last > 0 else []


class MemoryObjects:
    """Implements `pulse_core.ports.Objects`."""

    def __init__(self) -> None:
        self._blobs: dict[str, bytes] = {}

    async def put(self, blob: bytes) -> str:
        name = sha256(blob).hexdigest()
        self._blobs[name] = blob
        return name

    async def get(self, name: str) -> bytes | None:
        return self._blobs.get(name)


class MemoryCheckpoints:
    """Implements `pulse_core.ports.Checkpoints`."""

    def __init__(self) -> None:
        self._kept: dict[str, Checkpoint] = {}

    async def load(self) -> Mapping[str, Checkpoint]:
        return dict(self._kept)

    async def save(self, checkpoints: Mapping[str, Checkpoint]) -> None:
        self._kept.update(checkpoints)
