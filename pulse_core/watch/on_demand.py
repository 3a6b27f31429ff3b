"""A watcher of a capability that is imported and made once there is something for it to watch."""

import asyncio
from collections.abc import Callable, Collection, Sequence

from pulse_core.capability import WatcherContext
from pulse_core.model.event import Event
from pulse_core.model.vitals import Reading, Window
from pulse_core.ports.watcher import Watcher

IDLE_S = 3_600.0


class WatcherOnDemand:
    """Stands for the watcher of this name until `is_needed`, which is asked at the start, when the settings are loaded anew
    and after an event of these kinds; from then on it is what `make` returns. A capability that nobody uses costs a
    daemon no memory for what looks after it."""

    timeout = 120.0

    def __init__(
        self,
        name: str,
        context: WatcherContext,
        kinds: Collection[str],
        is_needed: Callable[[], bool],
        make: Callable[[], Watcher],
        conditions: tuple[str, ...] = (),
    ) -> None:
        self.name, self.key, self.conditions = name, name, conditions
        self._kinds, self._is_needed, self._make = frozenset(kinds), is_needed, make
        self._made: Watcher | None = None
        self._nudge = asyncio.Event()
        context.listen(self._on_events)

    def _on_events(self, events: Sequence[Event]) -> None:
        if self._made is None and not self._kinds.isdisjoint(event.kind for event in events):
            self._nudge.set()

    @property
    def nudge(self) -> asyncio.Event:
        return self._made.nudge if self._made else self._nudge

    @property
    def interval(self) -> float:
        return self._made.interval if self._made else IDLE_S

    async def collect(self) -> Reading:
        if self._made is None:
            if not self._is_needed():
                return Reading({})
            self._made = self._make()
        return await self._made.collect()

    def should_wake(self, window: Window) -> bool:
        return self._made is not None and self._made.should_wake(window)
