"""How a home stands: by the word of its daemon, or by what the files say while that is silent."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from pulse_core.app.context import HomeContext
from pulse_core.model.errors import NoHome, NotAnswering, Refused
from pulse_core.model.home_status import DaemonStatus, GuardedProcessStatus, HomeStatus, LockHolder
from pulse_core.model.moment import Moment, iso
from pulse_core.model.text import count_kinds
from pulse_core.ports.host import ProcessId

LAST_TICKS = 1_000
SHOWN = 8
COURSE_US = 600_000_000
DAEMON = "pulse"
"""The actor of what the daemon records by itself."""


def home_status(home: HomeContext) -> HomeStatus:
    """The status. `daemon.state` is `not-answering` if the lock is held, or `stopped`, where the rest is from files."""
    try:
        return home.daemon.status()
    except NotAnswering:
        return offline_status(home, home.daemon.lock_holder())
    except Refused:  # a run of an agent may not ask for it; where the files are its user's, it reads them
        return offline_status(home, home.daemon.lock_holder(), has_refused=True)


def guarded_processes(home: HomeContext) -> Mapping[str, GuardedProcessStatus]:
    """How each guarded process stands, by the word of the daemon; empty if none tells it."""
    try:
        return {process["name"]: process for process in home.daemon.status()["processes"]}
    except (NotAnswering, Refused):
        return {}


def unwritten_words(home: HomeContext) -> str:
    """What the daemon holds in memory since no disk takes it, in words; empty if that is nothing, or none tells it."""
    with suppress(NotAnswering, Refused):
        if held := home.daemon.status()["log"].get("held"):
            return f"the log can't be written; held in memory: {count_kinds(held)}"
    return ""


def status_at_stop(
    home: HomeContext, before: HomeStatus, is_alive: Callable[[ProcessId], bool]
) -> HomeStatus:
    """The status with the processes as they stood when the daemon was stopped. before: what one had said until then.

    It may have ended or started some since then; or another one was stopped, as during a restart, and what that knew is in
    the log alone. is_alive: whether a process lives on this machine.
    """
    from pulse_core.app.compute_status import recorded_status  # settings and rules take long to import
    from pulse_core.app.state import current_state

    state = current_state(home)
    control, processes = state.control, state.processes
    if control.stopped is None:
        return before
    is_same = control.pid == before["daemon"]["pid"]
    told = before["processes"] if is_same else [recorded_status(name, state) for name in control.processes]
    for one in told:
        history = processes[one["name"]]
        if history.pid is not None and history.started is not None:
            is_up = is_alive(ProcessId(history.pid, history.started))
            one["state"], one["pid"] = ("up", history.pid) if is_up else ("down", None)
        elif not is_same:  # as a unit may be, of which no process is known
            one["state"] = "up" if history.up else "down"
    return {**before, "processes": told, "unguarded": before.get("unguarded", []) if is_same else []}


def daemon_status(home: HomeContext) -> DaemonStatus:
    """The daemon's own part, without reading the log."""
    try:
        return home.daemon.status()["daemon"]
    except NotAnswering:
        return silent_daemon(home.daemon.lock_holder())
    except Refused:
        return silent_daemon(home.daemon.lock_holder(), has_refused=True)


def why_unheard(home: HomeContext) -> str | None:
    """Why nobody would hear a request, in words; None if a daemon answers."""
    daemon = daemon_status(home)
    if daemon["state"] in ("starting", "running"):
        return None
    if daemon["state"] == "stopped":
        return "no daemon runs; start one with: upulse daemon start"
    who = f"process {daemon['pid']}" if daemon["pid"] else "whoever holds the home"
    return f"the daemon ({who}) does not answer; see: upulse daemon logs"


WELL = frozenset({"up", "stopped", "starting", "unknown"})
"""States of a guarded process in which nothing is wrong with it, as far as is known."""


def is_wrong(status: HomeStatus) -> bool:
    """Whether something needs to be looked at: a process that should be up, a condition, the log, settings, a rule or the
    engine."""
    log = status["log"]
    engine: Mapping[str, Any] = status.get("engine") or {}
    return bool(
        status["conditions"]
        or any(process["state"] not in WELL for process in status["processes"])
        or status.get("unguarded")
        or log["damage"]
        or log["unwritten"]
        or log.get("refusing")
        or status.get("samples_lost")
        or status.get("outputs_lost")
        or status.get("settings_refused")
        or status.get("settings_faults")
        or status.get("safe_mode")
        or status.get("held_back")
        or status.get("raising")
        or status.get("set_aside")
        or (status["notices"]["waiting"] and status["notices"]["held_back"])
        or status["notices"].get("faults")
        or any(engine.get(key) for key in ("set_aside", "gone", "degraded", "quarantined", "without_plugins"))
    )


def why_last_known(daemon: DaemonStatus) -> str:
    """Why the state of processes is the last known one, in words; empty while a daemon answers."""
    if daemon["state"] == "stopped":
        return "no daemon runs; the states are the last known ones"
    if daemon["state"] == "not-answering":
        return f"the daemon (process {daemon['pid']}) does not answer; the states are the last known ones"
    return ""


def silent_daemon(holder: LockHolder | None, stopped: str = "", has_refused: bool = False) -> DaemonStatus:
    """A daemon that tells nothing: stuck or just starting if it holds the lock, else stopped since then.

    has_refused: it has just answered, and runs if it still holds the lock.
    """
    if holder is None:
        return {"state": "stopped", "pid": None, "since": stopped or None, "version": None}
    return {
        "state": "running" if has_refused else "not-answering",
        "pid": holder.pid,
        "since": iso(holder.since_at) if holder.since_at else None,
        "version": holder.version or None,
    }


def offline_status(home: HomeContext, holder: LockHolder | None, has_refused: bool = False) -> HomeStatus:
    """Everything but the daemon's own word: the projections folded anew, the last samples and ticks.

    has_refused: as of `silent_daemon`.
    """
    from pulse_core.app.compute_status import (  # settings and rules take long to import
        Beat,
        compute_status,
        recorded_status,
    )
    from pulse_core.app.state import current_state, settings_for

    state = current_state(home)
    settings, faults, is_known = settings_for(home, state)
    with home.vitals() as vitals:
        ticks = vitals.ticks(LAST_TICKS)
        beat = Beat(vitals.tick_count(), [tick.took_us for tick in reversed(ticks)])
        samples = vitals.last_samples()
    signs = [*(tick.moment for tick in ticks[:1]), *(sample.moment for sample in samples)]
    newest = {sample.key: sample for sample in samples}
    control = state.control
    holder = holder or lost_holder(home)
    died = holder is None and bool(control.started) and not control.stopped
    original = daemon_of_original(home) if died else None
    stopped = iso(control.stopped.at) if control.stopped else last_seen(home, signs) if died else ""
    daemon = silent_daemon(holder, stopped, has_refused)
    if original:  # the log was copied while that ran, and is told nothing of its end
        died, daemon["copy_of"] = False, {"pid": original[0], "home": original[1]}
    if died:
        daemon["died"] = True
    if holder is None and (failure := home.daemon.last_failure()) and iso(failure.at) >= stopped:
        # By the time: in a container each daemon may have the same process id.
        is_started = control.started is not None and control.started.at >= failure.began
        daemon["failed"] = {"at": iso(failure.at), "why": failure.why, "started": is_started}
    now, known = home.clock.now(), last_known(home, signs)
    whole = compute_status(settings, state, now, beat, daemon, newest, known=known)
    if not is_known:  # what depends on other settings than the names is not known
        whole["processes"] = [recorded_status(one.name, state) for one in settings.process]
        whole["capabilities"], whole["notices"]["held_back"] = {}, None
    if died or whole.get("settings_refused") == faults:  # what the file says now is told, and once
        whole.pop("settings_refused", None)
    if faults:
        whole["settings_faults"] = faults
    return whole


def lost_holder(home: HomeContext) -> LockHolder | None:
    """The daemon with this home's log, while nobody holds the lock; None if there is none."""
    return home.daemon.lost_holder(log) if (log := _log_of(home)) else None


def daemon_of_original(home: HomeContext) -> tuple[int, str] | None:
    """The daemon that runs with this home's log in another place, and its home there; None if there is none."""
    return home.daemon.daemon_of_original(log) if (log := _log_of(home)) else None


def _log_of(home: HomeContext) -> str:
    """The identity of its log; empty if there is none."""
    with suppress(NoHome), home.events() as log:
        return next((event.host for event in log.events(limit=1)), "")
    return ""


def last_known(home: HomeContext, signs: Sequence[Moment]) -> Moment | None:
    """The moment of the newest event, or of a later tick or sample; None if there is none."""
    events: Sequence[Moment] = ()
    with suppress(NoHome), home.events() as log:  # its log may never have been opened, or be gone
        events = [event.moment for event in log.events(limit=1, newest_first=True)]
    return max((*events, *signs), key=lambda moment: moment.at, default=None)


def last_seen(home: HomeContext, signs: Sequence[Moment]) -> str:
    """When a daemon ended that could not say so: it lived at least until its last sign of life.

    signs: when it last kept a tick or a sample .
    """
    with home.events() as log:
        rows = log.events(newest_first=True)
        event = next((row.at for row in rows if row.actor == DAEMON and row.kind != "log-restored"), 0)
    last = max(event, *(sign.at for sign in signs), 0)
    return iso(last) if last else ""


def overview(home: HomeContext) -> dict[str, Any]:
    """How everything stands, the newest effects and the last ticks, newest first."""
    from pulse_core.app.effect_timeline import effect_timeline, last_effects  # as above

    with home.events() as log, home.vitals() as vitals:
        effects = [effect_timeline(log, wish).spelled() for wish in last_effects(log, SHOWN)]
        ticks = [tick.spelled() for tick in vitals.ticks(SHOWN)]
        now = home.clock.now().at
        samples = [sample.data for sample in vitals.between(now - COURSE_US, now, "system-resource")]
    return {**home_status(home), "recent": effects, "ticks": ticks, "courses": courses(samples)}


def courses(samples: Sequence[Mapping[str, Any]]) -> dict[str, list[float]]:
    """CPU, memory, load and each disk's use over the last minutes, oldest first."""
    found: dict[str, list[float]] = {}
    for data in samples:
        used = {path: disk.get("used") for path, disk in data.get("disks", {}).items()}
        for name, value in {**{name: data.get(name) for name in ("cpu", "memory", "load1")}, **used}.items():
            if value is not None:
                found.setdefault(name, []).append(value)
    return found
