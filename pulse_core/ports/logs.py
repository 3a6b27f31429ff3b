"""Followers of log files and journal units, which find lines that match the settings."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

from pulse_core.model.json_types import Json

if TYPE_CHECKING:
    from pulse_core.settings.logs import LogSettings

Place = Mapping[str, Json]
"""A reader's position in one source. `total` grows with every byte read, so that positions can be ordered."""
_COMPARED, _QUANTUM = 600, 150


def line_cost(line: str) -> int:
    """What a recorded line costs whoever compares it with others, of which a long one is looked at in part: 1 to 5."""
    return 1 + min(len(line), _COMPARED) // _QUANTUM


class MatchedLines(NamedTuple):
    """The matches of one `[[log]]` (its number in the settings): lines to record, without secrets, and how many came."""

    log: int
    lines: tuple[str, ...]
    number: int


class LogBatch(NamedTuple):
    """Lines of one source (a path, or a unit's name) that came together, and the place behind them."""

    source: str
    place: Place
    hits: tuple[MatchedLines, ...]


class ReadProgress(NamedTuple):
    """The progress of a reader: all its sources, and the new positions of those without a match.

    behind: bytes that are written and not read; polled: whether files are polled, since the kernel sends no
    notifications; dropped: messages that journald suppressed, by unit.
    """

    sources: tuple[str, ...]
    places: Mapping[str, Place]
    behind: int = 0
    polled: bool = False
    dropped: Mapping[str, int] = {}


class LogFollower(Protocol):
    """Follows logs. No line is lost that still exists and can be recognised, and none is returned twice.

    A line that was taken is not returned again unless `follow` gets a position before it.
    """

    def follow(
        self, logs: "Sequence[LogSettings]", places: Mapping[str, Place], known: Collection[str]
    ) -> None:
        """Follow these and nothing else from now on, each source from its place.

        A source without a position begins at its end if its path or unit is not among the `known`, since its content is
        old then; otherwise at its beginning.
        """

    def listen(self, news: Callable[[], None]) -> None:
        """Call back whenever there is something to take."""

    def take(self) -> Sequence[LogBatch | ReadProgress]:
        """What was read since the last call, in order."""

    def recorded(self, sources: Sequence[str]) -> None:
        """Take note that a batch of each of these is recorded, those of a source in order.

        Of what is not recorded only some is read of each source, so that no source waits for a louder one.
        """
