"""The ticks that were recorded, as the snapshots that the rules saw then."""

from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import ExitStack
from typing import NamedTuple

from pulse_adapters.config.home import Home
from pulse_adapters.sqlite.event_reader import SqliteEventReader
from pulse_adapters.sqlite.vitals_reader import SqliteVitalsReader
from pulse_core.app.state import foldable, in_batches, settings_for, state_at
from pulse_core.composition import FOLD
from pulse_core.model.errors import PulseError
from pulse_core.model.event import Event
from pulse_core.model.moment import iso
from pulse_core.model.text import count
from pulse_core.model.tick import NOBODY, TickRecord
from pulse_core.model.vitals import WINDOW_US, Window
from pulse_core.ports.readers import EventQuery
from pulse_core.projections import Snapshot, State
from pulse_core.settings import Settings
from upulse_cli.engine.kept import kept_windows
from upulse_cli.engine.senses import Senses
from upulse_cli.wiring.home import home_context


class Then(NamedTuple):
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


class Past:
    """Recorded ticks later than a moment (UTC microseconds). `with` opens the files; `ticks` may be asked once.

    The settings are today's: of earlier ones the log keeps only the digest. caveats: what is not as it was.
    """

    def __init__(self, home: Home, since: int) -> None:
        self.home, self.since = home, since
        self.caveats: list[str] = []
        self._open = ExitStack()

    def __enter__(self) -> "Past":
        self._log = self._open.enter_context(SqliteEventReader(self.home.path))
        self._vitals = self._open.enter_context(SqliteVitalsReader(self.home.path))
        self.rows = self._vitals.ticks_since(self.since)
        if not self.rows:
            raise PulseError(
                f"no tick was recorded since {iso(self.since)}; vitals are kept for [watch] keep"
            )
        self.facts = state_at(home_context(self.home), self._log, self.rows[0].head.seq)
        self.settings, faults = settings_for(home_context(self.home), self.facts)
        self.reach = self._vitals.oldest_sample() or self.rows[-1].moment.at + 1
        self.caveats += [f"the settings are faulty: {fault}" for fault in faults[:1]]
        self.caveats += self._of_settings() + self._of_reach() + self._of_revisions()
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def _of_settings(self) -> list[str]:
        """What is to be said if others were in force; there are none in a record that names none."""
        other = [row.moment.at for row in self.rows if row.settings != self.settings.digest]
        if not other:
            return []
        return [
            f"other settings were in force for a part of it (until {iso(other[-1])}); the present ones are used"
        ]

    def _of_reach(self) -> list[str]:
        """From when on it is coarse."""
        coarse = sum(self._is_coarse(row) for row in self.rows)
        if not coarse:
            return []
        return [
            f"before {iso(self.reach)} only ticks that emitted effects are kept ({coarse:,} of them);"
            " what rules would have wished between them is not seen"
        ]

    def _is_coarse(self, row: TickRecord) -> bool:
        return bool(row.samples) and row.moment.at < self.reach

    def _of_revisions(self) -> list[str]:
        """Which were in force, if there were several."""
        asked = self.in_force
        if len(asked) < 2:
            return []
        words = ", then ".join(f"{commit[:12]} ({count(ticks, 'tick')})" for commit, ticks in asked.items())
        return [f"in force were {words}; --against recorded tells what they really did"]

    def of_what_is_not_said(self) -> list[str]:
        """What is to be said to whom it matters which revision was asked."""
        unsaid = [row.moment.at for row in self.rows if row.engine is None]
        if not unsaid:
            return []
        return [
            f"until {iso(unsaid[-1])} the records do not say which revision was asked; the log is believed"
        ]

    @property
    def first(self) -> Snapshot:
        """What was seen at the first of the ticks, less its newest samples."""
        row = self.rows[0]
        return snapshot(row, self.settings, {}, self.facts)

    @property
    def numbers(self) -> frozenset[int]:
        """The ticks of which it was recorded what came of them, but for those that had the reflex alone."""
        return frozenset(row.tick for row in self.rows if row.engine != "")

    @property
    def in_force(self) -> Mapping[str, int]:
        """How many ticks each commit was asked at, as far as the records say, in their order."""
        return Counter(row.engine for row in self.rows if row.engine and row.engine != NOBODY)

    async def history(self, seq: int) -> AsyncIterator[Sequence[Event]]:
        """All events after a row, in batches: what authors' projections remember of the time before."""
        with SqliteEventReader(self.home.path) as log:
            for batch in in_batches(log.events(EventQuery(since_seq=seq))):
                yield [foldable(row) for row in batch]

    def ticks(self) -> Iterator[Then]:
        """Each tick in turn."""
        log, state = News(self._log.events(EventQuery(since_seq=self.facts.seq))), self.facts
        senses = self._senses()
        for row in self.rows:
            news = log.upto(row.head.seq)
            state = FOLD(state, news, row.head.seq) if news else state
            windows = senses.at(row) if not self._is_coarse(row) else self._kept(row)
            asked = state.engine.commit if row.engine is None else row.engine
            layers = frozenset(layer.rule for layer in row.layers)
            yield Then(snapshot(row, self.settings, windows, state), news, row.effects, asked, layers)

    def _kept(self, row: TickRecord) -> dict[str, Window]:
        return kept_windows(self.home.objects, row.snapshot) or {}

    def _senses(self) -> Senses:
        """The samples from the first tick on of which there are any left."""
        first = next((row for row in self.rows if not self._is_coarse(row)), self.rows[-1])
        begin = first.moment.at - WINDOW_US
        before = [row for row in self._vitals.samples(first.samples) if row.moment.at <= begin]
        return Senses(iter(self._vitals.between(begin, self.rows[-1].moment.at)), before)


def snapshot(row: TickRecord, settings: Settings, windows: Mapping[str, Window], state: State) -> Snapshot:
    """The snapshot of a recorded tick."""
    return Snapshot(row.tick, row.moment, settings, windows, state)


class News:
    """Events that are taken row by row."""

    def __init__(self, rows: Iterator[Event]) -> None:
        self._rows = rows
        self._next = next(rows, None)

    def upto(self, seq: int) -> list[Event]:
        """The events up to this row that were not taken yet."""
        found = []
        while (row := self._next) and row.seq <= seq:
            found.append(foldable(row))
            self._next = next(self._rows, None)
        return found
