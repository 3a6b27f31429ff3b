"""The logs that programs write: followed for lines that somebody looks for."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

from pulse_core.model.json_types import Json

if TYPE_CHECKING:
    from pulse_core.settings import LogSettings

Place = Mapping[str, Json]
"""Where a reader stands in one source. `total` grows with everything that is read, so the later one can be told."""


class MatchedLines(NamedTuple):
    """What one `[[log]]` (its number in the settings) looked for and found: the lines to tell, and how many there were."""

    log: int
    lines: tuple[str, ...]
    number: int


class LogBatch(NamedTuple):
    """Lines of one source (a path, or a unit's name) that came together, and the place behind them."""

    source: str
    place: Place
    hits: tuple[MatchedLines, ...]


class ReadProgress(NamedTuple):
    """How far a reader is: all its sources, and the places of those that went on without saying anything.

    behind: bytes that are written and not read; polled: whether files are looked at now and then, since the kernel
    does not tell; dropped: messages that journald suppressed, by unit.
    """

    sources: tuple[str, ...]
    places: Mapping[str, Place]
    behind: int = 0
    polled: bool = False
    dropped: Mapping[str, int] = {}


class LogFollower(Protocol):
    """Follows logs. Nothing is lost that is still there and can be recognised, and nothing is said twice.

    What was taken counts as said: it is not said again unless `follow` is told of a place before it.
    """

    def follow(
        self, logs: "Sequence[LogSettings]", places: Mapping[str, Place], known: Collection[str]
    ) -> None:
        """Follow these and nothing else from now on, each source from its place.

        A source without a place begins at its end if its path or unit is not among the `known`, as what is there is
        history then; otherwise at its beginning.
        """
        ...

    def listen(self, news: Callable[[], None]) -> None:
        """Call back whenever there is something to be taken."""
        ...

    def take(self) -> Sequence[LogBatch | ReadProgress]:
        """What was heard since the last time, in its order."""
        ...
