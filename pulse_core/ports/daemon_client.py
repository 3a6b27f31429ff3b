"""The client of a home's daemon, for other processes."""

from collections.abc import Collection, Iterator, Mapping
from typing import Protocol

from pulse_core.model.home_status import FailedDaemon, HomeStatus, LockHolder
from pulse_core.model.json_types import Json


class DaemonClient(Protocol):
    """Sends requests to a home's daemon. Each method raises NotAnswering while none answers, or the daemon's error."""

    def status(self) -> HomeStatus:
        """The status as the daemon reports it. Waits two seconds at most."""

    def append(self, draft: Mapping[str, Json]) -> tuple[Mapping[str, Json], bool]:
        """Record an event; returns the event, which is on disk then, and whether it is there already as an open effect.

        Of a key one effect is open at most: another one is not recorded. draft: kind, subject, data, cause and id; the
        same id with the same content is the same event.
        """

    def shown(self) -> Mapping[str, Json]:
        """What the daemon shows to a caller that it binds: to a run of an agent, its task."""

    def follow(
        self, since: int, kinds: Collection[str] = (), *, brief: bool = False, patience: float = 10.0
    ) -> Iterator[Mapping[str, Json]]:
        """Events after row `since` as they come, for ever; only `kinds` if given.

        brief: the caller ends soon, so it does not count against the limit of followers. patience: seconds without
        any message after which the daemon counts as not answering.
        """

    def lock_holder(self) -> LockHolder | None:
        """Who holds the home's lock, whether or not it answers; None if nobody does."""

    def lost_holder(self, log: str) -> LockHolder | None:
        """The daemon in this place with this log, while nobody holds the lock: its file system was mounted anew under it.

        None if there is none; log: the id of the home.
        """

    def daemon_of_original(self, log: str) -> tuple[int, str] | None:
        """The daemon that runs with this log in another place, of which this home is a copy: its process, and its home.

        That is empty if nobody can tell it. None if there is none; log: as of `lost_holder`.
        """

    def last_failure(self) -> FailedDaemon | None:
        """The newest daemon that gave up; None if another one has begun since, or it can't be read."""
