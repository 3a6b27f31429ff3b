"""What happened to one task, read from the log."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pulse_core.app.context import HomeContext


def task_history(home: "HomeContext", id_: str) -> Sequence[Mapping[str, Any]]:
    """Its events as JSON values, oldest first, without heartbeats."""
    from pulse_core.ports.readers import EventQuery
    from pulse_core.tasks.events import TaskHeartbeat

    with home.events() as log:
        events = log.events(EventQuery(subject=id_))
        return [event.spelled() for event in events if event.kind != TaskHeartbeat.kind]
