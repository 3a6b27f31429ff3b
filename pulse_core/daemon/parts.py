"""The parts of a daemon, whose implementations the wiring chooses, and the settings in force."""

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from random import Random

from pulse_core.composition import RULES
from pulse_core.daemon.request_handler import RequestHandler
from pulse_core.engine.engine_context import EngineParts
from pulse_core.execute.loop import nothing_remains
from pulse_core.model.errors import SettingsRefused, describe_error
from pulse_core.model.event import Draft, Event
from pulse_core.model.kinds import SettingsLoaded, SettingsRejected
from pulse_core.ports.clock import Clock
from pulse_core.ports.executor import Executor
from pulse_core.ports.health import HealthProber
from pulse_core.ports.host import ProcessTable
from pulse_core.ports.log import EventLog
from pulse_core.ports.service_manager import ServiceManager
from pulse_core.ports.stores import Checkpoints, Objects, Sweep, SweepResult, Vitals
from pulse_core.ports.watcher import Watcher
from pulse_core.record.view import View
from pulse_core.rules import Rule
from pulse_core.settings.settings import Settings

Service = Callable[[RequestHandler, Callable[[], None]], Awaitable[None]]
"""A task that runs beside the loops, as the socket's server; it ends by being cancelled.

It gets the request handler, and calls its second argument once it serves (or knows that it can't): then the daemon is ready.
"""


class CurrentSettings:
    """Calling it returns the settings in force. load: reads them again; raises SettingsRefused with every fault."""

    def __init__(self, settings: Settings, load: Callable[[], Awaitable[Settings]] | None = None) -> None:
        self._settings, self._load = settings, load

    def __call__(self) -> Settings:
        return self._settings

    def loaded(self, before: Sequence[str]) -> Draft:
        """The draft that says which settings are in force. before: the processes that the last ones named."""
        names = tuple(process.name for process in self._settings.process)
        gone = tuple(name for name in before if name not in names)
        return Draft(SettingsLoaded(digest=self._settings.digest, processes=names, gone=gone))

    async def reload(self, requests: Sequence[Event]) -> Sequence[Draft]:
        """Read the settings again; the answer to each request. If they are refused or gone, the old ones stay."""
        before = [process.name for process in self._settings.process]
        try:
            self._settings = await self._load() if self._load else self._settings
            answer = self.loaded(before)
        except Exception as error:  # noqa: BLE001 - whoever has asked waits for an answer
            faults = error.faults if isinstance(error, SettingsRefused) else (describe_error(error),)
            answer = Draft(SettingsRejected(faults=faults))
        return [replace(answer, cause=request.id) for request in requests]


async def nothing_to_sweep() -> SweepResult:
    """A sweep of a home that has no files."""
    return SweepResult()


@dataclass(frozen=True)
class Parts:
    """Everything a daemon needs. `view` and `current_settings` are shared with the other parts.

    engine: the user's rules, folded in a process of their own; rules: those of the capabilities, folded in this one,
    outermost first; news: drafts that are recorded first; sweep: deletes unused files of the home; optional_watchers:
    those without which processes and the machine are kept alive all the same, so that safe mode may leave them out;
    end_remains: ends what an earlier daemon has left running of an effect; notice_faults: why addresses take no notice;
    outputs_lost: why what processes print may be lost; cpu: seconds of processor time of the loop's thread.
    """

    log: EventLog
    vitals: Vitals
    objects: Objects
    checkpoints: Checkpoints
    clock: Clock
    table: ProcessTable
    health: HealthProber
    executors: Mapping[str, Executor]
    current_settings: CurrentSettings
    view: View
    service_manager: ServiceManager
    new_id: Callable[[], str]
    dice: Random
    pid: int
    version: str
    watchers: Sequence[Watcher] = ()
    optional_watchers: Sequence[Watcher] = ()
    services: Mapping[str, Service] = field(default_factory=dict)
    engine: EngineParts | None = None
    rules: Sequence[Rule] = RULES
    news: Sequence[Draft] = ()
    sweep: Sweep = nothing_to_sweep
    end_remains: Callable[[str], Awaitable[None]] = nothing_remains
    notice_faults: Callable[[], Sequence[str]] = tuple
    outputs_lost: Callable[[], str] = str
    cpu: Callable[[], float] = time.thread_time
