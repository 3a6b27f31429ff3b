"""Restarts guarded processes that died, with backoff, and notifies a person only if that does not help."""

from pulse_core.model.actions import RESTART_PROCESS, STOP_PROCESS
from pulse_core.model.durations import rough_duration
from pulse_core.model.kinds import Effect
from pulse_core.model.verdict import Verdict
from pulse_core.projections import Snapshot
from pulse_core.projections.processes import STAYED_US
from pulse_core.rules.onion import Inner
from pulse_core.rules.survival.notices import is_told, notify_over, notify_unless_told, survival_effect
from pulse_core.rules.survival.process_status import (
    ProcessState,
    ProcessStatus,
    evaluate_status,
    restart_key,
)
from pulse_core.settings import ProcessSettings

WATCHER = "process-alive"
FRESH_US = 1_000_000
QUIET = frozenset({ProcessState.UP, ProcessState.UNKNOWN})
ALIVE = frozenset({ProcessState.UP, ProcessState.STOPPING})


async def process_watchdog(prev: Snapshot, curr: Snapshot, inner: Inner) -> Verdict:
    """Restart a guarded process that has died; stop one that a person wants down."""
    verdict = await inner(prev, curr)
    for process in curr.settings.process:
        status = evaluate_status(process, curr)
        if status.state is ProcessState.DUE:
            verdict = verdict.plus(restart_effect(process, status.why, curr))
        if status.stop:
            verdict = verdict.plus(stop_effect(process, curr))
        verdict = verdict.after_wait(status.wait_us)
        verdict = verdict.merged(still_down_notice(process, status, curr))
        verdict = verdict.merged(still_up_notice(process, status, curr))
        if status.state not in QUIET:
            verdict = verdict.noting(f"{process.name}: {status.state.value}: {status.why}")
    return verdict


def restart_effect(process: ProcessSettings, why: str, curr: Snapshot) -> Effect:
    """The effect that restarts it; it names the dead process so that no live one is replaced."""
    name, history = process.name, curr.process(process.name)
    dead = {"pid": history.pid, "started": history.started} if history.pid is not None else None
    # Seen to die a moment ago: another probe before the restart would only cost time.
    fresh = history.down is not None and curr.now.since(history.down) < FRESH_US
    params = {"process": name, "instead_of": dead, "if_dead": True, "fresh": fresh}
    reason = f"{name} is {why}"
    return survival_effect(RESTART_PROCESS, restart_key(name), params, reason, curr.samples(WATCHER))


def stop_effect(process: ProcessSettings, curr: Snapshot) -> Effect:
    """The effect that stops it because a person requested that."""
    name, intent = process.name, curr.process(process.name).stop
    reason = f"{intent.by if intent else 'somebody'} wants {name} down"
    key = f"{STOP_PROCESS}:{name}"
    return survival_effect(STOP_PROCESS, key, {"process": name}, reason, curr.samples(WATCHER))


def still_down_notice(process: ProcessSettings, status: ProcessStatus, curr: Snapshot) -> Verdict:
    """Pulse's restarts did not bring it back; this is over when it has been up for `healthy_after`."""
    name, history = process.name, curr.process(process.name)
    topic, title = f"flapping:{name}", f"{name} stays down"
    if status.tell and status.state not in ALIVE:
        began = history.attempts[0] if history.attempts else history.down
        return Verdict(notify_unless_told(topic, title, f"{name}: {status.why}", curr, WATCHER, news=began))
    if status.state is not ProcessState.UP or history.up is None or not is_told(topic, curr):
        return Verdict()
    age = curr.now.since(history.up)
    if (left := process.restart.healthy_after - age) > 0:
        return Verdict().after_wait(left)
    return Verdict(notify_over(topic, title, f"{name} is up for {rough_duration(age)}", curr, WATCHER))


def still_up_notice(process: ProcessSettings, status: ProcessStatus, curr: Snapshot) -> Verdict:
    """A person wants it down, and it is not; this is over when it has stayed down, or the stop has ended."""
    name, history = process.name, curr.process(process.name)
    topic, title = f"stop:{name}", f"{name} does not stay down"
    stop = history.stop
    if status.tell and status.state in ALIVE:
        began = stop.moment if stop else None
        return Verdict(notify_unless_told(topic, title, f"{name}: {status.why}", curr, WATCHER, news=began))
    if not is_told(topic, curr):
        return Verdict()
    if stop is None or not stop.holds(curr.now):
        return Verdict(notify_over(topic, title, f"nobody wants {name} down any more", curr, WATCHER))
    if status.state is not ProcessState.STOPPED or history.up is not None or history.down is None:
        return Verdict()
    if (left := STAYED_US - curr.now.since(history.down)) > 0:
        return Verdict().after_wait(left)
    return Verdict(notify_over(topic, title, f"{name} is down", curr, WATCHER))
