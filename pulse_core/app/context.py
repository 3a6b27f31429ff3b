"""What the application needs of one home: made once by whoever knows the adapters, and passed on."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from pulse_core.home import HomeLayout
from pulse_core.model.event import Checkpoint, Event
from pulse_core.model.json_types import Json

if TYPE_CHECKING:
    from pulse_core.ports.clock import Clock
    from pulse_core.ports.daemon_client import DaemonClient
    from pulse_core.ports.readers import EventReader, ObjectReader, VitalsReader
    from pulse_core.settings.settings import Settings


class LoadedSettings(NamedTuple):
    """Settings, and the faults that they have all the same; known: whether they are those of the home, not
    names alone."""

    settings: "Settings"
    faults: Sequence[str] = ()
    known: bool = True

    @property
    def caveats(self) -> list[str]:
        """What is wrong with them, in words, for an answer that rests on them."""
        rest = "" if self.known else ", so only the names of processes are known"
        return [f"the settings are faulty{rest}: {fault}" for fault in self.faults[:1]]


FoldProgress = Callable[[Iterable[Sequence[Event]], int], Iterator[Sequence[Event]]]
"""Passes batches of events on, and may tell a person how far they are of the last row."""


@dataclass(frozen=True, slots=True)
class HomeContext:
    """One home, over ports. Nothing is opened or loaded before it is asked for.

    settings: loads them; raises SettingsRefused. events: opens the log for reading; raises NoHome if there is none.
    checkpoints: of projections, by their names; none if that cache is missing or unreadable. new_id: makes the id of
    an event, a UUIDv7. append_offline: records drafts without a daemon, each as `DaemonClient.append` does with one; raises
    HomeBusy if somebody has the home.
    """

    layout: HomeLayout
    clock: "Clock"
    settings: Callable[[], LoadedSettings]
    events: "Callable[[], AbstractContextManager[EventReader]]"
    vitals: "Callable[[], AbstractContextManager[VitalsReader]]"
    checkpoints: Callable[[], Mapping[str, Checkpoint]]
    objects: "Callable[[], ObjectReader]"
    daemon: "DaemonClient"
    new_id: Callable[[], str]
    append_offline: (
        "Callable[[HomeContext, Sequence[Mapping[str, Any]]], Sequence[tuple[Mapping[str, Json], bool]]]"
    )
    progress: FoldProgress
