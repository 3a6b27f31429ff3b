"""The watcher of log files and units: lines that match the settings become events, with the reader's position."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from pulse_core.model.batches import in_batches
from pulse_core.model.event import Draft
from pulse_core.model.json_types import Json
from pulse_core.model.kinds import LogMatched
from pulse_core.model.moment import US_PER_SECOND
from pulse_core.model.vitals import Reading, Sample, Window
from pulse_core.ports.clock import Clock
from pulse_core.ports.logs import LogBatch, LogFollower, Place, ReadProgress, line_cost
from pulse_core.ports.loops import join_in_slices
from pulse_core.projections.state import CurrentState, encode_in_pieces
from pulse_core.settings.logs import LogSettings
from pulse_core.settings.settings import Settings
from pulse_core.watch.log_storm import PREFIX, LineCounter, conclude

USUAL, STORMY = 60.0, 5.0
"""Seconds between two samples, while no line matches and during a storm."""
MOVED_EVERY, ANYWAY_EVERY = 15 * US_PER_SECOND, 3_600 * US_PER_SECOND
"""How often positions are put into a sample: at most so often if they changed, and so often if they did not."""
LINES, CHARACTERS = 100, 24_000
"""The most that one event holds: a larger payload would be stored in a file of its own, which takes time."""
GAP, HURRY = 1.0, 0.5
"""Seconds after lines were recorded in which no others are: each time is a commit and a tick, for which a death waits.
HURRY if some wait already."""
MAX_DRAFTS, MAX_COST = 100, 300
"""So many events are announced at once, and lines at this cost: they are folded in one turn of the loop. The others wait
for the next collection, and the reader with them."""

Newest = Callable[[str, str], Awaitable[Sample | None]]


class SourceReport(NamedTuple):
    """The events from one source and its position behind them; they are recorded together or not at all.

    cost: of their lines.
    """

    source: str
    place: Place
    drafts: tuple[Draft, ...]
    cost: int


@dataclass(eq=False)
class ErrorLog:
    """The watcher `error-log`: an event for every batch of matching lines, a condition for every storm.

    What the reader returned is held until it is recorded, so that nothing is lost while the log can't be written.
    The sample holds how far every source is read, but never further than what is recorded. newest: finds the newest
    sample of a key that has a field.
    """

    name = key = "error-log"
    conditions = (PREFIX,)
    timeout = 10.0

    reader: LogFollower
    clock: Clock
    settings: Callable[[], Settings]
    current_state: CurrentState
    newest: Newest
    nudge: asyncio.Event = field(default_factory=asyncio.Event, init=False)
    _logs: tuple[LogSettings, ...] = field(default=(), init=False)
    _began: int | None = field(default=None, init=False)
    _unsaid: list[SourceReport] = field(default_factory=list, init=False)
    _places: "SourcePositions" = field(default_factory=lambda: SourcePositions({}), init=False)
    _progress: ReadProgress = field(default=ReadProgress((), {}), init=False)
    _tallies: dict[str, LineCounter] = field(default_factory=dict, init=False)
    _counted: dict[str, None] = field(default_factory=dict, init=False)
    _lines: int = field(default=0, init=False)
    _next: float = field(default=0.0, init=False)
    _timer: asyncio.TimerHandle | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self.reader.listen(self._nudge_soon)

    @property
    def interval(self) -> float:
        """Seconds until the next sample."""
        storms = any(name.startswith(PREFIX) for name in self.current_state().conditions.raised)
        return STORMY if storms else USUAL

    def should_wake(self, window: Window) -> bool:
        """Never: its conclusions are events, and those wake."""
        return False

    async def collect(self) -> Reading:
        """Take new lines from the reader, and conclude what is not recorded yet."""
        now = self.clock.now().mono
        self._take(now)
        if self.settings().log != self._logs:
            await self._follow(now)
        self._settle()
        due = self._due(now)
        more_wait = len(due) < len(self._unsaid)
        if conclusions := (*(draft for report in due for draft in report.drafts), *self._storms(now)):
            self._next = asyncio.get_running_loop().time() + (HURRY if more_wait else GAP)
        if more_wait:
            self._nudge_soon()
        return Reading(await self._data(now), conclusions)

    def _nudge_soon(self) -> None:
        """Collect at once, or as soon as it is time for other lines."""
        loop = asyncio.get_running_loop()
        if loop.time() >= self._next:
            self.nudge.set()
        elif self._timer is None or self._timer.when() <= loop.time():
            self._timer = loop.call_at(self._next, self.nudge.set)

    def _due(self, now: int) -> Sequence[SourceReport]:
        """As much of what is not recorded yet as is announced at once, first of sources that said least lately."""
        names = {report.source for report in self._unsaid}
        said = {name: self._tallies[name].minute(0, now).lines for name in names & self._tallies.keys()}
        quietest_first = sorted(self._unsaid, key=lambda report: said.get(report.source, 0))
        drafts = cost = 0
        for number, report in enumerate(quietest_first):
            if drafts >= MAX_DRAFTS or cost >= MAX_COST:
                return quietest_first[:number]
            drafts, cost = drafts + len(report.drafts), cost + report.cost
        return quietest_first

    def _take(self, now: int) -> None:
        """Take what the reader has found."""
        for message in self.reader.take():
            if isinstance(message, LogBatch):
                self._add_batch(message, now)
            else:
                self._go_on(message, now)

    async def _follow(self, now: int) -> None:
        """Make the reader follow the logs of the settings in force, each source from its latest known position."""
        known = {source_text(log) for log in self._logs}
        if self._began is None:
            sampled, known = places_in(await self.newest(self.key, "places"))
            logged = {name: source.place for name, source in self.current_state().logs.of.items()}
            self._places, self._began = SourcePositions(latest_places(logged, sampled)), now
        self._logs = self.settings().log
        self.reader.follow(self._logs, self._places.latest, known)

    # Batches from the reader

    def _add_batch(self, batch: LogBatch, now: int) -> None:
        """Hold its lines in events of bounded size; the last one of a rule has the number of lines only counted."""
        drafts: list[Draft] = []
        for hits in batch.hits:
            severity, untold = self._logs[hits.log].severity, hits.number - len(hits.lines)
            # Those that are told alone, which are so many a minute: a storm costs no more.
            parts = list(in_batches(hits.lines, LINES, len, CHARACTERS)) or [[]]
            for number, lines in enumerate(parts, 1):
                count = len(lines) + (untold if number == len(parts) else 0)
                matched = LogMatched(
                    severity=severity, lines=tuple(lines), count=count, place=dict(batch.place)
                )
                drafts.append(Draft(matched, subject=batch.source))
            self._lines += hits.number
            self._count(batch.source, hits.number, untold, now, source_text(self._logs[hits.log]))
        cost = sum(line_cost(line) for hits in batch.hits for line in hits.lines)
        self._unsaid.append(SourceReport(batch.source, batch.place, tuple(drafts), cost))
        self._places.move(batch.source, batch.place)

    def _go_on(self, progress: ReadProgress, now: int) -> None:
        for name, number in progress.dropped.items():
            if (news := number - self._progress.dropped.get(name, 0)) > 0:
                self._count(name, news, news, now)
        for name, place in progress.places.items():
            self._places.move(name, place)
        self._places.only(progress.sources)
        self._progress = progress

    def _count(self, source: str, lines: int, untold: int, now: int, together: str = "") -> None:
        """Count lines; those that are not told though their source is within its limit count for all of its rule."""
        limit = min((log.lines_per_minute for log in self._logs), default=0)
        if together and untold and self._tally(source).minute(now, now).lines + lines <= limit:
            self._tally(together).add(untold, untold, limit, now)
            untold = 0
        self._tally(source).add(lines, untold, limit, now)

    def _tally(self, source: str) -> LineCounter:
        self._counted[source] = None
        return self._tallies.setdefault(source, LineCounter())

    # What follows

    def _settle(self) -> None:
        """Drop what is recorded by now; provisional events may still be lost with this daemon.

        That is all up to the position that the log has. Which of two is the later one their totals don't say: a source
        that is followed anew begins with the wall clock, which may have been set back.
        """
        state = self.current_state()
        of, unsaid = state.logs.of, self._unsaid
        recorded = {
            one.source: number
            for number, one in enumerate(unsaid)
            if one.source in of and of[one.source].place == one.place
        }
        self._unsaid = [one for number, one in enumerate(unsaid) if number > recorded.get(one.source, -1)]
        self.reader.recorded(
            [one.source for number, one in enumerate(unsaid) if number <= recorded.get(one.source, -1)]
        )
        if not state.provisional:
            self._places.confirm({one.source for one in self._unsaid})

    def _storms(self, now: int) -> Iterator[Draft]:
        raised = self.current_state().conditions.raised.items()
        standing = {name.removeprefix(PREFIX): one for name, one in raised if name.startswith(PREFIX)}
        for source in dict.fromkeys((*self._counted, *standing)):  # without news, no other storm begins
            tally = self._tallies.setdefault(source, LineCounter())
            minute = tally.minute(self._began if self._began is not None else now, now)
            yield from conclude(source, minute, standing.get(source))
        self._counted.clear()
        for source, tally in tuple(self._tallies.items()):
            if not tally.lasts(now):
                del self._tallies[source]

    async def _data(self, now: int) -> Mapping[str, Json]:
        progress, lines, self._lines = self._progress, self._lines, 0
        data: dict[str, Json] = {"sources": len(progress.sources), "lines": lines, "behind": progress.behind}
        data |= {"polled": True} if progress.polled else {}
        data |= {"dropped": dict(progress.dropped)} if progress.dropped else {}
        if (places := self._places.kept(now)) is not None:
            known = [source_text(log) for log in self._logs]
            # As text: numbers in samples are rolled up by minute, which makes no sense for an inode.
            data["places"] = await join_in_slices(encode_in_pieces({"of": places, "known": known}, levels=2))
        return data


class SourcePositions:
    """The reader's positions in each source: the latest one, and the one up to which everything is recorded."""

    def __init__(self, places: Mapping[str, Place]) -> None:
        self.latest: dict[str, Place] = dict(places)
        self._confirmed: dict[str, Place] = dict(self.latest)
        self._news = False
        self._kept: int | None = None

    def move(self, source: str, place: Place) -> None:
        """Set the latest position of a source."""
        self.latest[source] = place
        self._news = True

    def only(self, sources: Sequence[str]) -> None:
        """Forget all other sources."""
        if gone := self.latest.keys() - set(sources):
            self._news = True
            for name in gone:
                del self.latest[name]
                self._confirmed.pop(name, None)

    def confirm(self, besides: set[str]) -> None:
        """Mark everything as recorded, except for these sources."""
        if self._news:
            self._confirmed |= {name: place for name, place in self.latest.items() if name not in besides}

    def kept(self, now: int) -> Mapping[str, Json] | None:
        """The confirmed positions, if it is time to put them into a sample."""
        since = ANYWAY_EVERY if self._kept is None else now - self._kept
        if not self._confirmed or since < (MOVED_EVERY if self._news else ANYWAY_EVERY):
            return None
        self._kept, self._news = now, self._confirmed != self.latest
        return {name: dict(place) for name, place in self._confirmed.items()}


def places_in(sample: Sample | None) -> tuple[Mapping[str, Place], set[str]]:
    """The positions in a sample, and the followed sources; empty if it is no sample of this watcher."""
    try:
        said = json.loads(sample.data["places"]) if sample else {}
        places = {name: place for name, place in dict(said.get("of", {})).items() if isinstance(place, dict)}
        return places, set(said.get("known", ()))
    except (TypeError, ValueError, AttributeError):
        return {}, set()


def source_text(log: LogSettings) -> str:
    """The files or the unit of a `[[log]]` as one text."""
    return log.path or f"{'user:' if log.user else 'unit:'}{log.unit}"


def bytes_read(place: Place) -> int:
    """How many bytes were read at a position; 0 without one."""
    total = place.get("total", 0)
    return total if isinstance(total, int) else 0


def latest_places(*several: Mapping[str, Place]) -> dict[str, Place]:
    """The latest position of each source."""
    latest: dict[str, Place] = {}
    for places in several:
        for name, place in places.items():
            if name not in latest or bytes_read(place) > bytes_read(latest[name]):
                latest[name] = place
    return latest
