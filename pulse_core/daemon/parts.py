"""The parts of a daemon; the wiring chooses their implementations."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random

from pulse_core.composition import RULES
from pulse_core.daemon.current_settings import CurrentSettings
from pulse_core.daemon.request_handler import RequestHandler
from pulse_core.engine.engine_context import EngineParts
from pulse_core.model.event import Draft
from pulse_core.ports import (
    Checkpoints,
    Clock,
    EventLog,
    Executor,
    Objects,
    ProcessTable,
    ServiceManager,
    Sweep,
    SweepResult,
    Vitals,
    Watcher,
)
from pulse_core.record.view import View
from pulse_core.rules import Rule

Service = Callable[[RequestHandler, Callable[[], None]], Awaitable[None]]
"""A task that runs beside the loops, as the socket's server; it ends by being cancelled.

It gets the request handler, and calls its second argument once it serves (or knows that it can't): then the daemon is ready.
"""


async def nothing_to_sweep() -> SweepResult:
    """A sweep of a home that has no files."""
    return SweepResult()


@dataclass(frozen=True)
class Parts:
    """Everything a daemon needs. `view` and `current_settings` are shared with the other parts.

    engine: the user's rules, folded in a process of their own; rules: those of the capabilities, folded in this one,
    outermost first; news: drafts that are recorded first; sweep: deletes unused files of the home.
    """

    log: EventLog
    vitals: Vitals
    objects: Objects
    checkpoints: Checkpoints
    clock: Clock
    table: ProcessTable
    executors: Mapping[str, Executor]
    current_settings: CurrentSettings
    view: View
    service_manager: ServiceManager
    new_id: Callable[[], str]
    dice: Random
    pid: int
    version: str
    watchers: Sequence[Watcher] = ()
    services: Mapping[str, Service] = field(default_factory=dict)
    engine: EngineParts | None = None
    rules: Sequence[Rule] = RULES
    news: Sequence[Draft] = ()
    sweep: Sweep = nothing_to_sweep
