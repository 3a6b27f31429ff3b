"""How a guarded process stands, judged from the log alone: the same words for the rule and for people."""

from collections.abc import Sequence
from enum import Enum
from typing import NamedTuple

from pulse_core.model.moment import US_PER_SECOND, Moment
from pulse_core.projections import ProcessHistory, Snapshot
from pulse_core.settings import ProcessSettings, RestartSettings, spell_duration

LOOK_US = 250_000
"""How long a start is given at least: the look that follows it must have had its turn."""

HALF_OPEN_MAX = 3_600 * US_PER_SECOND


class State(Enum):
    """The state of a guarded process."""

    UNKNOWN = "unknown"
    UP = "up"
    STOPPING = "stopping"
    STOPPED = "stopped"
    RESTARTING = "restarting"
    STARTING = "starting"
    WAITING = "waiting"
    BACKING_OFF = "backing-off"
    FLAPPING = "flapping"
    DUE = "due"


class Condition(NamedTuple):
    """A state, microseconds until it may change by itself (None: only by an event), and why.

    tell: the restarts that its budget allows did not help, so a person should know.
    """

    state: State
    wait_us: int | None = None
    why: str = ""
    tell: bool = False


def judge(process: ProcessSettings, curr: Snapshot) -> Condition:
    """How the process stands at this moment."""
    history = curr.process(process.name)
    stop = history.stop if history.stop and history.stop.holds(curr.now) else None
    if history.up is not None:
        stopping = stop is not None and not stop.tried
        return Condition(State.STOPPING if stopping else State.UP, why=history.evidence)
    if stop is not None:
        left = stop.expires_us - curr.now.since(stop.moment)
        return Condition(State.STOPPED, left, f"stopped by {stop.by}, for another {rough(left)}")
    if history.down is None:
        return Condition(State.UNKNOWN, why="not looked at yet")
    return _dead(process, history, curr)


def _dead(process: ProcessSettings, history: ProcessHistory, curr: Snapshot) -> Condition:
    if paused := curr.control.paused:
        dead_for = rough(curr.now.since(history.down or paused))
        return Condition(State.WAITING, why=f"dead for {dead_for}, and Pulse is paused by {curr.control.by}")
    if process.name in curr.projected.processes.restarting.values():
        return Condition(State.RESTARTING, why="its restart is under way")
    grace = max(process.restart.grace, LOOK_US)
    if history.starting and (left := grace - curr.now.since(history.starting)) > 0:
        return Condition(State.STARTING, left, f"started, has {rough(left)} left to come up")
    if missing := [name for name in process.depends_on if curr.process(name).up is None]:
        return Condition(State.WAITING, why=f"waits for {', '.join(missing)}")
    return _patience(process.restart, history, curr.now)


def _patience(restart: RestartSettings, history: ProcessHistory, now: Moment) -> Condition:
    tried = len(history.attempts)
    spent_at = exhausted(restart, history.attempts)
    if restart.max == 0:
        return Condition(State.FLAPPING, why="dead, and its budget allows no restart (max = 0)", tell=True)
    if spent_at is not None:
        delay = min(max(restart.backoff_max, US_PER_SECOND) << min(tried - spent_at, 20), HALF_OPEN_MAX)
    else:
        delay = min(restart.backoff << min(tried - 1, 40), restart.backoff_max) if tried else 0
    tell = tried >= restart.max  # within its window or not: they did not help
    left = delay - _quiet_for(history, now)
    if left <= 0:
        return Condition(State.DUE, why=_story(tried, history), tell=tell)
    state = State.BACKING_OFF if spent_at is None else State.FLAPPING
    return Condition(state, left, f"{_story(tried, history)}; next try in {rough(left)}", tell)


def _quiet_for(history: ProcessHistory, now: Moment) -> int:
    """Microseconds since it last died or was last tried, whichever is later."""
    moments = [history.down, *history.attempts[-1:]]
    return min(now.since(moment) for moment in moments if moment is not None)


def exhausted(restart: RestartSettings, attempts: Sequence[Moment]) -> int | None:
    """After how many attempts since it was last healthy the budget was first spent, or None if it is not."""
    span = restart.max
    if span == 0:
        return 0
    spans = range(span, len(attempts) + 1)
    return next((n for n in spans if attempts[n - 1].since(attempts[n - span]) < restart.within), None)


def restart_key(name: str) -> str:
    """The key that makes a process's restart unique among open effects."""
    return f"restart-process:{name}"


def rough(microseconds: int) -> str:
    """A duration for people, rounded to what they would say."""
    for unit in (3_600_000_000, 60_000_000, 1_000_000, 100_000):
        if microseconds >= unit:
            return spell_duration(round(microseconds / unit) * unit)
    return "a moment"


def _story(tried: int, history: ProcessHistory) -> str:
    times = {0: "dead", 1: "dead again after 1 restart"}.get(tried, f"dead again after {tried} restarts")
    return f"{times} ({history.error or history.evidence})"
