"""The ticks that were recorded, as the snapshots that the rules saw then.

A snapshot is put together again: the state is folded from the log up to the tick's row, and the windows are moved on
with the samples up to those that the tick names. Samples are rolled up after a while; of older ticks only those that
emitted effects are known, whose snapshots were kept whole.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from types import MappingProxyType
from typing import Any, Generic, NamedTuple, TypeVar

from pulse_core.app.context import HomeContext
from pulse_core.app.state import foldable, settings_for, state_at
from pulse_core.composition import FOLD
from pulse_core.model.errors import Damaged, PulseError
from pulse_core.model.event import Event
from pulse_core.model.json_types import Json
from pulse_core.model.moment import Moment, local_text
from pulse_core.model.text import count
from pulse_core.model.tick import NOBODY, TickRecord
from pulse_core.model.vitals import WINDOW_US, Sample, Window, windows_after
from pulse_core.ports.readers import EventQuery, ObjectReader
from pulse_core.projections.state import Snapshot

T = TypeVar("T")


class RecordedTick(NamedTuple):
    """A recorded tick: what the rules saw, what was new in the log, and the keys of the effects that came of it.

    engine: as in the tick's record, by the log's word where the record does not say; layers: the rules that were
    asked, survival's among them.
    """

    snapshot: Snapshot
    news: Sequence[Event]
    emitted: Sequence[str]
    engine: str = ""
    layers: frozenset[str] = frozenset()

    @property
    def is_whole(self) -> bool:
        """Whether rules could have been asked: with an engine in force, ticks that came too fast had the reflex alone."""
        return bool(self.engine) or not self.snapshot.engine.commit


class RecordedTicks:
    """Recorded ticks later than a moment (UTC microseconds). `with` opens the files; `ticks` may be asked once.

    The settings are today's: of earlier ones the log keeps only the digest. caveats: what is not as it was.
    """

    def __init__(self, home: HomeContext, since: int) -> None:
        self.home, self.since = home, since
        self.caveats: list[str] = []

    def __enter__(self) -> "RecordedTicks":
        with ExitStack() as opened:
            self._log = opened.enter_context(self.home.events())
            self._vitals = opened.enter_context(self.home.vitals())
            self._begin()
            self._open = opened.pop_all()
        return self

    def _begin(self) -> None:
        self.rows = self._vitals.ticks_since(self.since)
        if not self.rows:
            raise PulseError(
                f"no tick was recorded since {local_text(self.since)}; vitals are kept for [watch] keep"
            )
        self.state = state_at(self.home, self._log, self.rows[0].head.seq)
        loaded = settings_for(self.home, self.state)
        self.settings = loaded.settings
        self.reach = self._vitals.oldest_sample() or self.rows[-1].moment.at + 1
        self.caveats += [*loaded.caveats, *self._differences()]

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def _differences(self) -> Iterator[str]:
        """What is to be said where other settings were in force, the samples are gone, or several revisions were asked."""
        if other := [row.moment.at for row in self.rows if row.settings != self.settings.digest]:
            until = local_text(other[-1])
            yield f"other settings were in force for a part of it (until {until}); the present ones are used"
        if coarse := sum(self._is_coarse(row) for row in self.rows):
            yield (
                f"before {local_text(self.reach)} only ticks that emitted effects are kept ({coarse:,} of them);"
                " what rules would have wished between them is not seen"
            )
        if len(asked := self.in_force) > 1:
            words = ", then ".join(
                f"{commit[:12]} ({count(ticks, 'tick')})" for commit, ticks in asked.items()
            )
            yield f"in force were {words}; --against recorded tells what they really did"

    def _is_coarse(self, row: TickRecord) -> bool:
        return bool(row.samples) and row.moment.at < self.reach

    def unnamed_revisions(self) -> list[str]:
        """What is to be said to whom it matters which revision was asked."""
        unsaid = [row.moment.at for row in self.rows if row.engine is None]
        if not unsaid:
            return []
        return [
            f"until {local_text(unsaid[-1])} the records do not say which revision was asked; the log is believed"
        ]

    @property
    def first(self) -> Snapshot:
        """What was seen at the first of the ticks, less its newest samples."""
        row = self.rows[0]
        return Snapshot(row.tick, row.moment, self.settings, {}, self.state)

    @property
    def numbers(self) -> frozenset[int]:
        """The ticks of which it was recorded what came of them, but for those that had the reflex alone."""
        return frozenset(row.tick for row in self.rows if row.engine != "")

    @property
    def in_force(self) -> Mapping[str, int]:
        """How many ticks each commit was asked at, as far as the records say, in their order."""
        return Counter(row.engine for row in self.rows if row.engine and row.engine != NOBODY)

    def ticks(self) -> Iterator[RecordedTick]:
        """Each tick in turn."""
        log, state = self._log.events(EventQuery(since_seq=self.state.seq)), self.state
        events = Cursor(map(foldable, log), lambda event: event.seq)
        # The samples from the first tick on of which there are any left; of senses that speak seldom older ones, too.
        first = next((row for row in self.rows if not self._is_coarse(row)), self.rows[-1])
        begin = first.moment.at - WINDOW_US
        samples = Cursor(iter(self._vitals.between(begin, self.rows[-1].moment.at)), lambda sample: sample.id)
        before = (row for row in self._vitals.samples(first.samples) if row.moment.at <= begin)
        moving = SampleWindows(windows_after({}, before))
        for row in self.rows:
            news = events.upto(row.head.seq)
            state = FOLD(state, news, row.head.seq) if news else state
            windows = (
                kept_windows(self.home.objects(), row.snapshot)
                if self._is_coarse(row)
                else moving.at(row, samples.upto(max(row.samples, default=0)))
            )
            seen = Snapshot(row.tick, row.moment, self.settings, windows, state)
            asked = state.engine.commit if row.engine is None else row.engine
            yield RecordedTick(seen, news, row.effects, asked, frozenset(layer.rule for layer in row.layers))


class Cursor(Generic[T]):
    """Rows that are taken a few at a time. number: of a row, by which they are in order."""

    def __init__(self, rows: Iterator[T], number: Callable[[T], int]) -> None:
        self._rows, self._number = rows, number
        self._next = next(rows, None)

    def upto(self, last: int) -> list[T]:
        """The rows up to this number that were not taken yet."""
        found = []
        while self._next is not None and self._number(self._next) <= last:
            found.append(self._next)
            self._next = next(self._rows, None)
        return found


class SampleWindows:
    """Windows that move on from tick to tick."""

    def __init__(self, windows: Mapping[str, Window] = MappingProxyType({})) -> None:
        self._windows = windows

    def at(self, tick: TickRecord, news: Sequence[Sample]) -> Mapping[str, Window]:
        """The windows that this tick saw: of the senses that it names. news: samples up to the newest that it names."""
        windows, named = windows_after(self._windows, news) if news else self._windows, set(tick.samples)
        gone = [key for key, window in windows.items() if not window.last or window.last.id not in named]
        if gone:  # a start remembers no more than a minute, and an engine's own watchers go with their commit
            windows = {key: one for key, one in windows.items() if key not in gone}
        self._windows = windows
        return windows


def kept_windows(objects: ObjectReader, name: str | None) -> dict[str, Window]:
    """The windows in a kept snapshot; none if it was not kept, or is not what was kept."""
    try:
        blob = objects.read(name) if name else None
        if blob is None:
            return {}
        windows: dict[str, list[list[Any]]] = json.loads(blob)["windows"]
        return {key: Window(tuple(_samples(key, rows))) for key, rows in windows.items()}
    except (Damaged, OSError, ValueError, KeyError, TypeError):
        return {}


def _samples(key: str, rows: Iterable[Sequence[Any]]) -> Iterator[Sample]:
    """The samples of a window from the rows of a kept snapshot."""
    data: Mapping[str, Json] = {}
    for id_, moment, part, *is_change in rows:
        data = {**data, **part} if is_change else part
        yield Sample(id_, key, Moment(*moment), data)
