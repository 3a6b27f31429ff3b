"""The ticks that were recorded, as the snapshots that the rules saw then."""

from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import ExitStack
from typing import NamedTuple

from pulse_adapters.config.home import Home
from pulse_adapters.sqlite.reader import EventRow, LogReader, Wanted
from pulse_adapters.sqlite.vitals_reader import SampleRow, TickRow, VitalsReader
from pulse_core.model.errors import PulseError
from pulse_core.model.event import Event
from pulse_core.model.moment import Moment, iso
from pulse_core.model.vitals import WINDOW_US, Sample, Window
from pulse_core.projections import Projected, Snapshot, fold
from pulse_core.settings import Settings
from upulse_cli.facts import checkpointed, foldable, in_batches
from upulse_cli.recorded import facts_at
from upulse_cli.standing import decided


class Then(NamedTuple):
    """A recorded tick: what the rules saw, what was new in the log, and the keys of the effects that came of it."""

    snapshot: Snapshot
    news: Sequence[Event]
    emitted: Sequence[str]


class Past:
    """Recorded ticks later than a moment (UTC microseconds). `with` opens the files; `ticks` may be asked once.

    The settings are today's: of earlier ones the log keeps only the digest. caveats: what is not as it was.
    """

    def __init__(self, home: Home, since: int) -> None:
        self.home, self.since = home, since
        self.caveats: list[str] = []
        self._open = ExitStack()

    def __enter__(self) -> "Past":
        self._log = self._open.enter_context(LogReader(self.home.path))
        self._vitals = self._open.enter_context(VitalsReader(self.home.path))
        self.rows = self._vitals.ticks_since(self.since)
        if not self.rows:
            raise PulseError(
                f"no tick was recorded since {iso(self.since)}; vitals are kept for [watch] keep"
            )
        state = checkpointed(self.home, self._log)
        seq = self.rows[0].seq
        self.facts = facts_at(self._log, seq, (state,))
        self.settings, faults = decided(self.home, self.facts)
        self.caveats += [f"the settings are faulty: {fault}" for fault in faults[:1]]
        if any(row.settings != self.settings.digest for row in self.rows):
            self.caveats.append("other settings were in force for a part of it; the present ones are used")
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    @property
    def first(self) -> Snapshot:
        """What was seen at the first of the ticks, less its newest samples."""
        row = self.rows[0]
        return snapshot(row, self.settings, {}, self.facts)

    async def history(self, seq: int) -> AsyncIterator[Sequence[Event]]:
        """All events after a row, in batches: what authors' projections remember of the time before."""
        with LogReader(self.home.path) as log:
            for batch in in_batches(log.events(Wanted(since_seq=seq))):
                yield [foldable(row) for row in batch]

    def ticks(self) -> Iterator[Then]:
        """Each tick in turn."""
        samples = iter(self._vitals.between(self.rows[0].at - WINDOW_US, self.rows[-1].at))
        events = self._log.events(Wanted(since_seq=self.facts.seq))
        senses, log, state = Senses(samples), News(events), self.facts
        for row in self.rows:
            news = log.upto(row.seq)
            state = fold(state, news, row.seq) if news else state
            windows = senses.upto(max(row.samples, default=0))
            yield Then(snapshot(row, self.settings, windows, state), news, row.effects)


def snapshot(row: TickRow, settings: Settings, windows: dict[str, Window], state: Projected) -> Snapshot:
    """The snapshot of a recorded tick."""
    return Snapshot(row.tick, Moment(row.at, row.boot, row.mono), settings, windows, state)


class Senses:
    """Windows that move on with the samples."""

    def __init__(self, rows: Iterator[SampleRow]) -> None:
        self._rows = rows
        self._next = next(rows, None)
        self._windows: dict[str, Window] = {}

    def upto(self, id_: int) -> dict[str, Window]:
        """The windows after the sample with this id."""
        moved = dict(self._windows)
        while (row := self._next) and row.id <= id_:
            sample = Sample(row.id, row.key, Moment(row.at, row.boot, row.mono), row.data)
            moved[row.key] = moved.get(row.key, Window()).plus(sample)
            self._next = next(self._rows, None)
        self._windows = moved
        return moved


class News:
    """Events that are taken row by row."""

    def __init__(self, rows: Iterator[EventRow]) -> None:
        self._rows = rows
        self._next = next(rows, None)

    def upto(self, seq: int) -> list[Event]:
        """The events up to this row that were not taken yet."""
        found = []
        while (row := self._next) and row.seq <= seq:
            found.append(foldable(row))
            self._next = next(self._rows, None)
        return found
