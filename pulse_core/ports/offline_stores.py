"""Stores for writing to a home whose daemon is not running."""

from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from typing import TYPE_CHECKING, Protocol

from pulse_core.ports.executor import Executor
from pulse_core.ports.log import EventLog
from pulse_core.ports.stores import Checkpoints

if TYPE_CHECKING:
    from pulse_core.projections import State
    from pulse_core.settings import Settings


class OfflineStores(Protocol):
    """The stores of a home without a daemon, opened for one caller that writes. Nothing is migrated."""

    @property
    def actor(self) -> str:
        """The name that the caller's events bear."""
        ...

    @property
    def checkpoints(self) -> Checkpoints: ...

    def lock(self) -> AbstractContextManager[object]:
        """Hold the home's lock; raises HomeBusy if another process holds it for two seconds."""
        ...

    def log(self) -> AbstractAsyncContextManager[EventLog]:
        """The log, whose writer the caller is; raises Damaged if rows are gone. Only under the lock."""
        ...

    def executors(
        self, settings: "Callable[[], Settings]", state: "Callable[[], State]"
    ) -> Mapping[str, Executor]:
        """The executors that check effects, by action."""
        ...
