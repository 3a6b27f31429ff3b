"""Talking to the daemon of a home from another process."""

from collections.abc import Collection, Iterator, Mapping
from typing import Protocol

from pulse_core.model.home_status import HomeStatus
from pulse_core.model.json_types import Json
from pulse_core.model.lock_holder import LockHolder


class DaemonClient(Protocol):
    """Asks the daemon of one home. Each verb raises NotAnswering while none answers, or the daemon's own error."""

    def status(self) -> HomeStatus:
        """How everything stands, by its own word. Waits two seconds at most."""
        ...

    def append(self, draft: Mapping[str, Json]) -> tuple[Mapping[str, Json], bool]:
        """Have an event recorded: the event, and whether it was there before. It is on disk then.

        draft: kind, subject, data, cause and id; the same id with the same content is the same event.
        """
        ...

    def follow(
        self, since: int, kinds: Collection[str] = (), *, brief: bool = False, patience: float = 10.0
    ) -> Iterator[Mapping[str, Json]]:
        """Events after row `since` as they come, for ever; only `kinds` if given.

        brief: the caller soon has what it waits for, so it takes no place of those who stay. patience: seconds without
        a sign of life after which the daemon counts as not answering.
        """
        ...

    def lock_holder(self) -> LockHolder | None:
        """Who holds the home's lock, whether or not it answers; None if nobody does."""
        ...
