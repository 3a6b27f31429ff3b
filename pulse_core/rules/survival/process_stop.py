"""The status of a process that a person wants down: stop it, check, stop it again, then notify."""

from pulse_core.model.backoff import Backoff
from pulse_core.model.durations import rough_duration
from pulse_core.model.moment import US_PER_SECOND
from pulse_core.projections import Intent, ProcessHistory, Snapshot
from pulse_core.rules.survival.process_state import ProcessState, ProcessStatus
from pulse_core.settings import ProcessSettings

STOP_TRIES = 5
STOP_PAUSE = 5 * US_PER_SECOND
"""How long a stop may take, beyond the time between two probes; doubled with each further try."""


def stop_status(process: ProcessSettings, stop: Intent, curr: Snapshot) -> ProcessStatus:
    """The status of a process while `stop`, which has not expired, wants it down."""
    history = curr.process(process.name)
    if history.up is not None and stop.worked:
        return _back(history, stop, curr)
    if (history.up is None and history.starting is None) or stop.worked:
        left = _left(stop, curr)
        return ProcessStatus(
            ProcessState.STOPPED, left, f"stopped by {stop.by}, for another {rough_duration(left)}"
        )
    return _still_up(process, stop, curr)


def _back(history: ProcessHistory, stop: Intent, curr: Snapshot) -> ProcessStatus:
    """It went down, stayed down, and is up again: somebody started it, so notify instead of stopping it."""
    left = _left(stop, curr)
    why = f"{history.evidence}, though {stop.by} wants it down for another {rough_duration(left)}: somebody started it"
    return ProcessStatus(ProcessState.UP, left, why, tell=True)


def _still_up(process: ProcessSettings, stop: Intent, curr: Snapshot) -> ProcessStatus:
    wanted = f"{stop.by} wants it down"
    if curr.control.paused:
        return ProcessStatus(ProcessState.STOPPING, why=f"{wanted}, and Pulse is paused by {curr.control.by}")
    if process.name in curr.state.processes.stopping.values():
        return ProcessStatus(ProcessState.STOPPING, why=f"{wanted}; its stop is under way")
    if stop.tried is None:
        return ProcessStatus(ProcessState.STOPPING, why=wanted, stop=True)
    story = (
        f"{wanted}, and it is still up after {_times(stop.tries)}{f' ({stop.error})' if stop.error else ''}"
    )
    first = STOP_PAUSE + curr.settings.watch.process_interval
    if (wait := Backoff(first, first << STOP_TRIES).after(stop.tries) - curr.now.since(stop.tried)) > 0:
        return ProcessStatus(
            ProcessState.STOPPING, wait, f"{story}; looked at again in {rough_duration(wait)}"
        )
    if stop.tries < STOP_TRIES:
        return ProcessStatus(ProcessState.STOPPING, why=story, stop=True)
    return ProcessStatus(ProcessState.STOPPING, _left(stop, curr), f"{story}; not tried again", tell=True)


def _left(stop: Intent, curr: Snapshot) -> int:
    """Microseconds until the intent expires."""
    return stop.expires_us - curr.now.since(stop.moment)


def _times(tries: int) -> str:
    return "1 stop" if tries == 1 else f"{tries} stops"
