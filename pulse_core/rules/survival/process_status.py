"""Computes the status of a guarded process from the log alone."""

from collections.abc import Sequence

from pulse_core.model.actions import RESTART_PROCESS
from pulse_core.model.durations import rough_duration
from pulse_core.model.moment import Moment
from pulse_core.projections import ProcessHistory, Snapshot, Stage
from pulse_core.rules.survival.process_state import ProcessState, ProcessStatus
from pulse_core.rules.survival.process_stop import stop_status
from pulse_core.settings import ProcessSettings, RestartSettings

START_GRACE_US = 250_000
"""The least grace period of a start: the probe that follows it must have run."""


def evaluate_status(process: ProcessSettings, curr: Snapshot) -> ProcessStatus:
    """The status of the process at this moment."""
    history = curr.process(process.name)
    if history.stop and history.stop.holds(curr.now):
        return stop_status(process, history.stop, curr)
    if history.up is not None:
        return ProcessStatus(ProcessState.UP, why=history.evidence)
    if history.down is None:
        return ProcessStatus(ProcessState.UNKNOWN, why="not looked at yet")
    return _dead_status(process, history, curr)


def _dead_status(process: ProcessSettings, history: ProcessHistory, curr: Snapshot) -> ProcessStatus:
    if paused := curr.control.paused:
        dead_for = rough_duration(curr.now.since(history.down or paused))
        return ProcessStatus(
            ProcessState.WAITING, why=f"dead for {dead_for}, and Pulse is paused by {curr.control.by}"
        )
    if process.name in curr.state.processes.restarting.values():
        return ProcessStatus(ProcessState.RESTARTING, why="its restart is under way")
    grace = max(process.restart.grace, START_GRACE_US)
    if history.starting and (left := grace - curr.now.since(history.starting)) > 0:
        return ProcessStatus(
            ProcessState.STARTING, left, f"started, has {rough_duration(left)} left to come up"
        )
    if missing := [name for name in process.depends_on if curr.process(name).up is None]:
        return ProcessStatus(ProcessState.WAITING, why=f"waits for {', '.join(missing)}")
    return _backoff_status(process.restart, history, curr.now)


def _backoff_status(restart: RestartSettings, history: ProcessHistory, now: Moment) -> ProcessStatus:
    charged, failed = len(history.charged), _failed(history)
    spent_at = attempts_at_exhaustion(restart, history.charged)
    if restart.max == 0:
        return ProcessStatus(
            ProcessState.FLAPPING, why="dead, and its budget allows no restart (max = 0)", tell=True
        )
    if spent_at is not None:
        delay = restart.pauses_when_spent.after(charged - spent_at + 1)
    else:
        delay = restart.pauses.after(failed) if failed else 0
    tell = charged >= restart.max  # within the window or not: restarts did not help
    left = delay - _quiet_for(history, now)
    if left <= 0:
        return ProcessStatus(ProcessState.DUE, why=_describe_history(history), tell=tell)
    state = ProcessState.BACKING_OFF if spent_at is None else ProcessState.FLAPPING
    return ProcessStatus(
        state, left, f"{_describe_history(history)}; next try in {rough_duration(left)}", tell
    )


def _failed(history: ProcessHistory) -> int:
    """How many failed attempts the backoff counts: restarts in a row, and a first start that did not bring it up."""
    return len(history.charged) if history.stage is Stage.UP else len(history.attempts)


def _quiet_for(history: ProcessHistory, now: Moment) -> int:
    """Microseconds since it last died or was last tried, whichever is later."""
    moments = [history.down, *history.attempts[-1:]]
    return min(now.since(moment) for moment in moments if moment is not None)


def attempts_at_exhaustion(restart: RestartSettings, attempts: Sequence[Moment]) -> int | None:
    """After how many attempts since it was last healthy the budget was first exhausted, or None if it is not."""
    span = restart.max
    if span == 0:
        return 0
    spans = range(span, len(attempts) + 1)
    return next((n for n in spans if attempts[n - 1].since(attempts[n - span]) < restart.within), None)


def restart_key(name: str) -> str:
    """The key that makes a process's restart unique among open effects."""
    return f"{RESTART_PROCESS}:{name}"


def _describe_history(history: ProcessHistory) -> str:
    charged = len(history.charged)
    after = "its first start" if not charged else "1 restart" if charged == 1 else f"{charged} restarts"
    times = f"dead again after {after}" if _failed(history) else "dead"
    return f"{times} ({history.error or history.evidence})"
