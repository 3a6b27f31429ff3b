"""Notices about a guarded process: that it stays down, or does not stay down; and when that is over."""

from typing import NamedTuple

from pulse_core.model.durations import rough_duration
from pulse_core.model.kinds import Effect
from pulse_core.projections import Snapshot
from pulse_core.projections.processes import STAYED_US
from pulse_core.rules.survival.notices import is_told, notify_over, notify_unless_told
from pulse_core.rules.survival.process_state import ProcessState, ProcessStatus
from pulse_core.settings import ProcessSettings

WATCHER = "process-alive"
ALIVE = frozenset({ProcessState.UP, ProcessState.STOPPING})


class ProcessNotices(NamedTuple):
    """Notices, and microseconds until there may be more of them (None: only after an event)."""

    notices: tuple[Effect, ...] = ()
    wait_us: int | None = None


def still_down_notices(process: ProcessSettings, condition: ProcessStatus, curr: Snapshot) -> ProcessNotices:
    """Pulse's restarts did not bring it back; this is over when it has been up for `healthy_after`."""
    name, history = process.name, curr.process(process.name)
    topic, title = f"flapping:{name}", f"{name} stays down"
    if condition.tell and condition.state not in ALIVE:
        began = history.attempts[0] if history.attempts else history.down
        return ProcessNotices(
            notify_unless_told(topic, title, f"{name}: {condition.why}", curr, WATCHER, news=began)
        )
    if condition.state is not ProcessState.UP or history.up is None or not is_told(topic, curr):
        return ProcessNotices()
    age = curr.now.since(history.up)
    if (left := process.restart.healthy_after - age) > 0:
        return ProcessNotices(wait_us=left)
    return ProcessNotices(notify_over(topic, title, f"{name} is up for {rough_duration(age)}", curr, WATCHER))


def still_up_notices(process: ProcessSettings, condition: ProcessStatus, curr: Snapshot) -> ProcessNotices:
    """A person wants it down, and it is not; this is over when it has stayed down, or the stop has ended."""
    name, history = process.name, curr.process(process.name)
    topic, title = f"stop:{name}", f"{name} does not stay down"
    stop = history.stop
    if condition.tell and condition.state in ALIVE:
        began = stop.moment if stop else None
        return ProcessNotices(
            notify_unless_told(topic, title, f"{name}: {condition.why}", curr, WATCHER, news=began)
        )
    if not is_told(topic, curr):
        return ProcessNotices()
    if stop is None or not stop.holds(curr.now):
        return ProcessNotices(notify_over(topic, title, f"nobody wants {name} down any more", curr, WATCHER))
    if condition.state is not ProcessState.STOPPED or history.up is not None or history.down is None:
        return ProcessNotices()
    if (left := STAYED_US - curr.now.since(history.down)) > 0:
        return ProcessNotices(wait_us=left)
    return ProcessNotices(notify_over(topic, title, f"{name} is down", curr, WATCHER))
