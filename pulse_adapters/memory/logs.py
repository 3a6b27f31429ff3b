"""Logs in memory: lines that a test writes, told at once to whoever follows."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

from pulse_core.model.secret_text import hide_secrets
from pulse_core.ports.logs import LogBatch, MatchedLines, Place, ReadProgress
from pulse_core.settings.logs import LogSettings


@dataclass
class MemoryLogs:
    """Implements `pulse_core.ports.LogReader` for exact paths and keywords; a place is a number of lines.

    lines: all that was written, by source; a limit of lines a minute counts from when following began.
    """

    lines: dict[str, list[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._logs: tuple[LogSettings, ...] = ()
        self._at: dict[str, int] = {}
        self._told: dict[tuple[str, int], int] = {}
        self._heard: list[LogBatch | ReadProgress] = []
        self._news: Callable[[], None] = lambda: None

    def write(self, source: str, *lines: str) -> None:
        """A program writes lines into a log."""
        self.lines.setdefault(source, []).extend(lines)
        self._read(source)

    def listen(self, news: Callable[[], None]) -> None:
        self._news = news

    def follow(
        self, logs: Sequence[LogSettings], places: Mapping[str, Place], known: Collection[str]
    ) -> None:
        self._logs, self._heard, self._at, self._told = tuple(logs), [], {}, {}
        for log in logs:
            source = log.path or log.unit or ""
            there = len(self.lines.get(source, ()))
            begin = 0 if source in known else there
            self._at[source] = int(places.get(source, {"total": begin})["total"])
        self._heard.append(
            ReadProgress(tuple(self._at), {name: {"total": at} for name, at in self._at.items()})
        )
        for source in self._at:
            self._read(source)

    def take(self) -> Sequence[LogBatch | ReadProgress]:
        heard, self._heard = self._heard, []
        return heard

    def recorded(self, sources: Sequence[str]) -> None:
        """Nothing: all is in memory already."""

    def _read(self, source: str) -> None:
        if source not in self._at:
            return
        new = self.lines.get(source, [])[self._at[source] :]
        self._at[source] += len(new)
        hits = [self._hits(source, number, new) for number, log in enumerate(self._logs)]
        if any(one.number for one in hits):
            found = tuple(one for one in hits if one.number)
            self._heard.append(LogBatch(source, {"total": self._at[source]}, found))
        self._news()

    def _hits(self, source: str, number: int, lines: Sequence[str]) -> MatchedLines:
        log = self._logs[number]
        found = [line for line in lines if any(word in line for word in log.keywords)]
        if source not in (log.path, log.unit):
            return MatchedLines(number, (), 0)
        before = self._told.get((source, number), 0)
        told = tuple(map(hide_secrets, found[: max(0, log.lines_per_minute - before)]))
        self._told[source, number] = before + len(told)
        return MatchedLines(number, told, len(found))
