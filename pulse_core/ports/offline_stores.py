"""Stores for writing to a home whose daemon is not running."""

from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pulse_core.ports.executor import Executor
from pulse_core.ports.log import EventLog
from pulse_core.ports.stores import Checkpoints

if TYPE_CHECKING:
    from pulse_core.projections.state import State
    from pulse_core.settings.settings import Settings


@dataclass(frozen=True)
class OfflineStores:
    """The stores of a home without a daemon, opened for one caller that writes. Nothing is migrated.

    actor: the name that the caller's events bear; lock: holds the home's lock, raises HomeBusy if another process holds
    it for two seconds; log: whose writer the caller is, only under the lock, raises Damaged if rows are gone;
    executors: those that check effects, by action.
    """

    actor: str
    checkpoints: Checkpoints
    lock: Callable[[], AbstractContextManager[object]]
    log: Callable[[], AbstractAsyncContextManager[EventLog]]
    executors: "Callable[[Callable[[], Settings], Callable[[], State]], Mapping[str, Executor]]"
