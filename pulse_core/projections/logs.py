"""Matching lines of the followed logs, and how far each one is read."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from pulse_core.model.event import Event
from pulse_core.model.json_types import Json
from pulse_core.model.kinds import LogMatched
from pulse_core.model.moment import US_PER_SECOND, Moment
from pulse_core.model.payload import decode_plain
from pulse_core.model.stored_data import REDACTED

SOURCES = 1_000
SEEN = 20
ALIKE = 20
ENTRIES = 4_000
"""Batches and kinds of lines that are kept of all sources together."""
FEW = 200
"""The most of these that are stored with each tick that acts: to write 4,000 takes 15 ms."""
QUIET = 600 * US_PER_SECOND
"""After so long without a matching line the next one begins a new episode."""
_SHOWN = 300

_CHANGING = re.compile(
    r"0[xX][0-9a-fA-F]++|\b[0-9a-fA-F]{6,}+\b(?:-[0-9a-fA-F]{4,}+\b)*+|\d++(?:[.:,]\d++)*+"
)
"""What may differ between similar lines: numbers, times, addresses, hashes, UUIDs; nothing is looked at twice."""
_DIGIT = re.compile(r"\d")


class MatchBatch(NamedTuple):
    """One batch of lines that matched: when, how bad, how many, and the first of them."""

    moment: Moment
    severity: str
    number: int
    line: str


class SimilarLines(NamedTuple):
    """Lines of one episode that differ only in numbers: how bad, how many, an example, first and last when."""

    severity: str
    number: int
    line: str
    first: Moment
    last: Moment


class LogSource(NamedTuple):
    """One followed file or unit: where its reader stood after the last match, and its last 20 batches.

    alike: the lines since it was last quiet by what they have in common, the one that came last at the end (the last
    20); since: when that began; lines: how many there were since then, with those that nobody was told.
    """

    place: Mapping[str, Json]
    seen: tuple[MatchBatch, ...] = ()
    alike: Mapping[str, SimilarLines] = {}
    since: Moment | None = None
    lines: int = 0

    @property
    def entries(self) -> int:
        """How much is kept of it."""
        return len(self.seen) + len(self.alike)

    @property
    def last(self) -> Moment | None:
        """When a line last matched."""
        return self.seen[-1].moment if self.seen else None


@dataclass(frozen=True, slots=True)
class Logs:
    """By path or unit, the one that matched last at the end (the last 1,000); entries: of all of them together."""

    of: Mapping[str, LogSource] = field(default_factory=dict)
    entries: int = 0


KINDS = frozenset({LogMatched.kind})
NOWHERE = LogSource({})


def after(state: Logs, events: Iterable[Event]) -> Logs:
    """The logs after more events."""
    of, entries = dict(state.of), state.entries
    for event in events:
        if event.kind == LogMatched.kind and event.data != REDACTED:
            before = of.pop(event.subject, NOWHERE)
            of[event.subject] = source = _with_batch(before, event)
            entries += source.entries - before.entries
            if len(of) > SOURCES:
                entries -= of.pop(next(iter(of))).entries
            if entries > ENTRIES:
                entries -= _shorten_oldest(of, entries - ENTRIES)
    return Logs(of, entries)


def _shorten_oldest(of: dict[str, LogSource], over: int) -> int:
    """Keep of those that matched longest ago only the last batch, until so many entries are gone; returns how many."""
    gone = 0
    for name, source in of.items():
        if gone >= over:
            break
        if source.entries > 1:
            of[name] = source._replace(seen=source.seen[-1:], alike={})
            gone += source.entries - 1
    return gone


def _with_batch(before: LogSource, event: Event) -> LogSource:
    data, now = decode_plain(event.data), event.moment
    if before.last is None or now.since(before.last) >= QUIET:
        before = LogSource(before.place, before.seen, since=now)
    severity, number = str(data["severity"]), int(data["count"])
    lines = [str(line) for line in data.get("lines") or ()]
    alike = dict(before.alike)
    for line in lines:
        shape = shape_of(line)
        known = alike.pop(shape, None) or SimilarLines(severity, 0, line[:_SHOWN], now, now)
        worse = severity if rank(severity) > rank(known.severity) else known.severity
        alike[shape] = known._replace(severity=worse, number=known.number + 1, last=now)
        if len(alike) > ALIKE:
            del alike[next(iter(alike))]
    seen = MatchBatch(now, severity, number, (lines or [""])[0][:_SHOWN])
    place: Mapping[str, Json] = data.get("place", {})
    return LogSource(place, (*before.seen[1 - SEEN :], seen), alike, before.since, before.lines + number)


SEVERITIES = ("warning", "error", "critical")


def rank(severity: str) -> int:
    """The rank of a severity; one of another version counts as the lowest."""
    return SEVERITIES.index(severity) if severity in SEVERITIES else 0


def shape_of(line: str) -> str:
    """The common form of similar lines: numbers, times, hashes and UUIDs as `#`, cut to what is shown."""
    return _CHANGING.sub(_changed, line[: 2 * _SHOWN])[:_SHOWN]


def _changed(found: re.Match[str]) -> str:
    """`#`, unless it is a word of letters alone, as `facade`."""
    return "#" if _DIGIT.search(found[0]) else found[0]
