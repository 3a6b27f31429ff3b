"""How a home stands, computed from its settings, its state and what its daemon measures. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from pulse_core.app.profile import percentile
from pulse_core.composition import (
    ask_holds,
    condition_words,
    current_holds,
    faults_of_capabilities,
    programs_of_capabilities,
    status_lines,
)
from pulse_core.execute.notice_batching import undelivered_reason
from pulse_core.model.durations import duration_text
from pulse_core.model.home_status import (
    ConditionStatus,
    DaemonStatus,
    GuardedProcessStatus,
    HomeStatus,
    PauseStatus,
    SafeModeStatus,
    WatcherStatus,
)
from pulse_core.model.json_types import Json
from pulse_core.model.kinds import Effect
from pulse_core.model.moment import US_PER_SECOND, Moment, iso
from pulse_core.model.names import PROCESS_USAGE
from pulse_core.model.text import count
from pulse_core.model.verdict import Verdict
from pulse_core.model.vitals import Sample, Window
from pulse_core.ports.watcher import Watcher
from pulse_core.projections.conditions import Condition
from pulse_core.projections.control import Control
from pulse_core.projections.effects import Phase
from pulse_core.projections.state import Snapshot, State
from pulse_core.rules.survival.blast_radius import ActionBudget, action_budget, budget_of
from pulse_core.rules.survival.holds import Hold, longest_hold
from pulse_core.rules.survival.process_watchdog import (
    PAUSED,
    WATCHER,
    ProcessState,
    evaluate_status,
    newest_look,
    restart_effect,
    restart_key,
)
from pulse_core.rules.survival.process_watchdog import ProcessStatus as ProcessCondition
from pulse_core.settings.cross_checks import overlaps
from pulse_core.settings.settings import Settings
from pulse_core.watch.watcher_costs import Cost

USAGES = ("memory", "cpu", "threads", "descriptors", "processes")
"""What the newest sample says of a process's tree."""
LOOKS, LATE = 3, 10 * US_PER_SECOND
"""A process was looked at lately if that is no more than so many intervals and this time ago, which a look may take."""


@dataclass(frozen=True, slots=True)
class Beat:
    """The ticks so far: how many, and what the last ones took in microseconds, oldest first."""

    count: int = 0
    took_us: Sequence[int] = ()


def compute_status(
    settings: Settings,
    state: State,
    now: Moment,
    beat: Beat,
    daemon: DaemonStatus,
    samples: Mapping[str, Sample],
    looked: Moment | None = None,
    known: Moment | None = None,
) -> HomeStatus:
    """Daemon, processes, effects, conditions, notices, capabilities, ticks and the newest samples. Pure.

    samples: the newest one of each key; looked: when the daemon that answers last looked at the processes; None if none
    does; known: when what is told of them was known, if that is not now.
    """
    windows = {key: Window((sample,)) for key, sample in samples.items()}
    vitals = {key: dict(sample.data) for key, sample in samples.items()}
    snapshot = Snapshot(0, known or now, settings, windows, state)
    whole = Snapshot(0, now, settings, windows, state)
    control, effects, looks = state.control, state.effects, vitals.get(WATCHER, {})
    usages = vitals.get(PROCESS_USAGE, {})
    asked = ask_holds(snapshot)
    shared, found = overlaps(settings.process), process_conditions(snapshot, asked.holds)
    status: HomeStatus = {
        "daemon": daemon,
        "paused": _pause_status(control),
        "safe_mode": _safe_mode_status(control),
        "log": {
            "rows": state.seq,
            "verified": iso(control.verified.at) if control.verified else None,
            "damage": control.damage or None,
            "unwritten": state.provisional,
        },
        "processes": [
            process_status(
                process.name,
                found[process.name],
                snapshot,
                looked,
                shared.get(process.name, ""),
                usages.get(process.name, {}),
            )
            for process in settings.process
        ],
        "unguarded": [
            {"name": name, "pids": look["leftovers"]}
            for name, look in looks.items()
            if look.get("leftovers") and name not in {process.name for process in settings.process}
        ],
        "effects": {
            "pending": effects.count(Phase.PENDING, Phase.RETRYING),
            "executing": effects.count(Phase.EXECUTING),
            "acked": effects.acked,
            "failed": effects.failed,
            "unknown": effects.unknown,
            "cancelled": effects.cancelled,
        },
        "conditions": [_condition_status(name, one, whole) for name, one in state.conditions.raised.items()],
        "notices": {
            "standing": sum(not notice.over for notice in state.notices.of.values()),
            "waiting": len(state.notices.open),
            "held_back": undelivered_reason(state, settings, now) or None,
        },
        "capabilities": status_lines(whole),
        "programs": programs_of_capabilities(whole),
        "tick": {
            "count": beat.count,
            "last_ms": beat.took_us[-1] / 1000 if beat.took_us else None,
            "p99_ms": None if (p99 := percentile(sorted(beat.took_us), 99)) is None else p99 / 1000,
        },
        "vitals": vitals,
    }
    if faults := faults_of_capabilities(state, asked):
        status["set_aside"] = faults
    if control.faults and control.stopped is None:
        status["settings_refused"] = control.faults
    return status


def _pause_status(control: Control) -> PauseStatus | None:
    if control.paused is None:
        return None
    return {"since": iso(control.paused.at), "by": control.by, "why": control.why}


def _safe_mode_status(control: Control) -> SafeModeStatus | None:
    if control.safe is None:
        return None
    return {"since": iso(control.safe.at), "crashes": control.crashes, "left_out": control.left_out}


def _condition_status(name: str, condition: Condition, curr: Snapshot) -> ConditionStatus:
    return {
        "name": name,
        "state": condition.state,
        "since": iso(condition.began.at),
        "evidence": condition_words(name, condition, curr),
        "tried": len(condition.measures),
    }


def process_status(
    name: str,
    condition: ProcessCondition,
    snapshot: Snapshot,
    looked: Moment | None,
    shared: str = "",
    usage: Mapping[str, Json] = MappingProxyType({}),
) -> GuardedProcessStatus:
    """One guarded process in the words of the rule that guards it, and what its newest look says of its probes.

    It is unknown if nobody has looked at it lately. shared: what it is recognised by as another one is, in words;
    usage: its entry in the newest sample of what processes take.
    """
    history, look = snapshot.process(name), newest_look(name, snapshot)
    # A start that has failed has not ended the time for which it is down.
    started = history.starting if condition.state is ProcessState.STARTING else None
    since = history.up or started or history.down or history.starting
    if (doubt := unlooked(snapshot, looked)) and since:
        digest = snapshot.state.control.digest
        # Its budget and what it waits for may be others than when it was known.
        by = ", by the settings of now" if digest and digest != snapshot.settings.digest else ""
        state, why = (
            ProcessState.UNKNOWN,
            f"{doubt}; last known{by}: {condition.state.value}, {condition.why}",
        )
        since = looked  # it came up, or down, before that
    else:
        state, why = condition.state, condition.words()
    pid: int | None = history.pid if history.up else look.get("pid")  # it may live and not serve
    # It was left over for as long as it was not in the settings, and no search has been made since it is.
    leftovers = [one for one in look.get("leftovers", ()) if one != pid]
    failing = probe_words(look)
    told = [words for words in (look.get("others", ""), shared, failing) if words not in why]
    if state is ProcessState.UP and why in failing:  # the same answer, told with how many were like it
        why = ""
    return {
        "name": name,
        "state": state.value,
        "pid": pid if not doubt else None,
        "since": iso(since.at) if since else None,
        "restarts": history.restarts,
        "why": "; ".join(filter(None, (why, *told, history.unlogged))),
        "leftovers": leftovers,
        "usage": {what: usage[what] for what in USAGES if what in usage}
        if pid and not doubt and usage.get("pid") == pid
        else None,
    }


def recorded_status(name: str, state: State) -> GuardedProcessStatus:
    """A process of which the log alone tells, since neither its settings nor a daemon can be asked."""
    history = state.processes[name]
    since = history.up or history.down
    stopped = f", which {history.stop.by} wants" if history.stop else ""
    known = f"{'up' if history.up else 'down'}{stopped}: {history.evidence}" if since else "nothing"
    return {
        "name": name,
        "state": ProcessState.UNKNOWN.value,
        "pid": None,
        "since": None,
        "restarts": history.restarts,
        "why": f"no daemon tells of it, and its settings can't be read; last known: {known}",
    }


def unlooked(snapshot: Snapshot, looked: Moment | None) -> str:
    """Why what the log says of processes may be over, in words; empty if somebody looked at them lately."""
    if looked is None:
        return "no daemon tells of it"
    age = snapshot.now.since(looked)
    lately = LATE + LOOKS * snapshot.settings.watch.process_interval
    return f"not looked at for {duration_text(age)}" if age > lately else ""


def probe_words(look: Mapping[str, Json]) -> str:
    """How many of the last probes failed, and why; empty if there is nothing to say."""
    said = look.get("probe", {})
    error, failed = said.get("error", ""), said.get("failed", 0)
    return (
        f"{failed} of the last {count(said['of'], 'probe')} failed, the last one: {error}"
        if failed
        else error
    )


def process_conditions(
    snapshot: Snapshot, holds: Sequence[Hold] | None = None
) -> Mapping[str, ProcessCondition]:
    """How each guarded process stands; a restart that is due is silenced if somebody holds it back, and waits if the budget
    does, which these restarts spend in the order of their processes. One that is due later is tried once nobody does.

    holds: what is held back, if that was asked already.
    """
    processes, wishes = snapshot.settings.process, list[Effect]()
    found = {one.name: evaluate_status(one, snapshot, newest_look(one.name, snapshot)) for one in processes}
    due = [process for process in processes if found[process.name].state is ProcessState.DUE]
    later = [name for name, one in found.items() if one.state in PAUSED]
    if holds is None:
        holds = current_holds(snapshot) if due or later else ()
    for name in later:
        wait, hold = found[name].wait_us or 0, longest_hold(restart_key(name), holds)
        found[name] = found[name]._replace(wait_us=max(wait, hold.left_us if hold else 0))
    for process in due:
        name, condition = process.name, found[process.name]
        if hold := longest_hold(restart_key(name), holds):
            found[name] = _held(condition, ProcessState.SILENCED, hold.whose, hold.left_us)
        else:
            wishes.append(restart_effect(process, condition.why, newest_look(name, snapshot), snapshot))
    for topic in {budget_of(wish) for wish in wishes}:
        budget = action_budget(topic, Verdict(tuple(wishes)), snapshot)
        for place, key in enumerate(budget.held):
            name, left = key.removeprefix(restart_key("")), budget.frees_us(snapshot.now, place)
            by, setting = budget_words(budget), " ([budget] actions_per_minute)"
            found[name] = _held(found[name], ProcessState.WAITING, by, left, setting)
    return found


def _held(
    condition: ProcessCondition, state: ProcessState, by: str, left_us: int, setting: str = ""
) -> ProcessCondition:
    why = f"{condition.why}; held back by {by}{setting}, for another {duration_text(left_us)}"
    return ProcessCondition(state, left_us, why, held_by=by)


def budget_words(budget: ActionBudget) -> str:
    """A budget that holds something back, in the words of `held_by`."""
    return f"the budget of {budget.limit} a minute"


def cause_of_hold(effect: Effect, curr: Snapshot) -> str:
    """Who holds back this effect, which a rule of survival has dropped, in the words of `held_by`."""
    if curr.control.paused:
        return f"a pause of {curr.control.by}"
    if last := longest_hold(effect.key, current_holds(curr)):
        return last.whose
    return budget_words(action_budget(budget_of(effect), Verdict(), curr))


def watcher_status(watcher: Watcher, cost: Cost, now: float) -> WatcherStatus:
    """What a watcher costs; now: loop time.

    The times are of its newest looks, which cover `over_s` seconds; `interval_s` is the mean time from one to the next,
    since many say of each look anew when the next one is due; `cpu` is the share of a core that they took of the daemon's
    loop, without what child processes do for it.
    """
    took = sorted(look.took for look in cost.recent)
    first, pauses = cost.recent[0] if cost.recent else None, len(took) - 1
    mean = (cost.recent[-1].at - first.at) / pauses if first and pauses else watcher.interval
    over = max(now - first.at, watcher.interval) if first else 0.0
    return {
        "name": watcher.name,
        "interval_s": round(mean, 3),
        "looks": cost.looks,
        "failures": cost.failures,
        "p50_ms": _ms(percentile(took, 50)),
        "p99_ms": _ms(percentile(took, 99)),
        "cpu": round((cost.spent - first.spent) / over, 6) if first and over else None,
        "over_s": round(over, 1),
    }


def _ms(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds * 1000, 3)
