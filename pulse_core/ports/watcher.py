"""Watchers: what collects samples."""

from typing import TYPE_CHECKING, Protocol, runtime_checkable

from pulse_core.model.vitals import Reading, Window

if TYPE_CHECKING:
    from asyncio import Event as Nudge


class Watcher(Protocol):
    """Collects samples of one key on its own schedule.

    interval and timeout are in seconds; setting `nudge` makes the loop collect at once.
    """

    @property
    def name(self) -> str: ...

    @property
    def key(self) -> str: ...

    @property
    def interval(self) -> float: ...

    @property
    def timeout(self) -> float: ...

    @property
    def nudge(self) -> "Nudge": ...

    async def collect(self) -> Reading:
        """Collect once: the data of a sample, and the events that are concluded from it."""

    def should_wake(self, window: Window) -> bool:
        """Whether the newest sample is worth a tick at once. Pure."""


@runtime_checkable
class ConditionSource(Protocol):
    """A watcher that raises conditions; where nobody runs it, these are cleared."""

    @property
    def conditions(self) -> tuple[str, ...]:
        """What the names of all of them begin with."""


def conditions_of(watcher: Watcher) -> tuple[str, ...]:
    """What the names of all conditions begin with that it raises; empty if it raises none."""
    return watcher.conditions if isinstance(watcher, ConditionSource) else ()
