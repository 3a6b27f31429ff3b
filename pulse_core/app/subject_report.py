"""Why something is as it is now, whether or not anything was ever done about it: a process, a condition, Pulse itself."""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from pulse_core.app.context import HomeContext
from pulse_core.app.incidents import incidents
from pulse_core.app.state import snapshot
from pulse_core.app.status import WELL, home_status, is_wrong
from pulse_core.composition import ALL_RULES, LOADED, condition_words, current_holds
from pulse_core.model.event import Event
from pulse_core.model.home_status import GuardedProcessStatus, HomeStatus, daemon_word
from pulse_core.model.kinds import ConditionCleared, ConditionRaised, ProcessDied, ProcessUp, SettingsLoaded
from pulse_core.model.moment import iso, local_text
from pulse_core.model.names import NOTIFY, is_of_process, subjects_of
from pulse_core.model.verdict import Verdict, WithheldEffect
from pulse_core.ports.readers import EventQuery, EventReader
from pulse_core.projections.conditions import Measure, why_unwatched
from pulse_core.projections.incidents import NOT_GUARDED, PULSE, REQUESTS
from pulse_core.projections.state import Snapshot, State
from pulse_core.rules import Rule, compose
from pulse_core.rules.measurements import described
from pulse_core.rules.onion import rule_name, run_synchronously
from pulse_core.rules.survival.holds import longest_hold
from pulse_core.rules.survival.process_watchdog import restart_key
from pulse_core.rules.survival.resource_guard import describe_measure

Told = dict[str, Any]

EVER_GUARDED = (ProcessUp.kind, ProcessDied.kind)
"""What is recorded of a process only while it is guarded."""
CONDITION = (ConditionRaised.kind, ConditionCleared.kind)


def subject_report(
    home: HomeContext, log: EventReader, name: str, status: HomeStatus | None = None
) -> Told | None:
    """What the name means: a process, a condition, something of a capability, `pulse`, or what was guarded once, in this
    order; None if nothing.

    status: what the daemon says, which may know of conditions that no log takes. `kind`, `name`, `state`, `since` and
    `why` are told of each; the rest depends on the kind.
    """
    curr = snapshot(home, None).snapshot
    if any(process.name == name for process in curr.settings.process):
        return _process(home, log, name, curr, status)
    told = newest(log, name, CONDITION)
    if status and (unrecorded := _unrecorded(name, curr, status)):
        return unrecorded
    if told or curr.conditions[name]:
        return _condition(name, told, curr, status)
    for capability in LOADED:
        if capability.subject and (found := capability.subject(name, curr, partial(_folded, curr))):
            return dict(found)
    if name == PULSE:
        return _pulse(home)
    past = past_status(log, name, curr.state)
    return _past_process(log, past) if past else None


def _process(
    home: HomeContext, log: EventReader, name: str, curr: Snapshot, status: HomeStatus | None
) -> Told:
    standing = next((one for one in home_status(home)["processes"] if one["name"] == name), None)
    down = curr.process(name).down
    told = incidents(home, down.at) if down else ()
    ongoing = [one for one in told if (one.about, one.subject, one.over) == ("process", name, False)]
    held = standing.get("held") if standing else None
    by = held["by"] if held else None
    if down and not (standing and "held" in standing):  # no daemon answers, which would know
        hold = longest_hold(restart_key(name), current_holds(curr))
        by = hold.whose if hold else f"a pause of {curr.control.by}" if curr.control.paused else None
    request = newest(log, name, tuple(REQUESTS))
    notices = _held_notices(name, curr, of_process=True) if status else ()
    return {
        "kind": "process",
        "name": name,
        "state": standing["state"] if standing else "unknown",
        "since": standing["since"] if standing else None,
        "why": "; ".join((standing["why"], *_why_waiting(name, standing["why"], curr), *notices))
        if standing
        else "the daemon does not guard it yet; see: upulse daemon reload",
        "held_by": by,
        "held_since": held["since"] if held else None,
        "held_or_earlier": bool(held and held.get("or_earlier")),
        "incident": ongoing[-1].spelled() if ongoing else None,
        "conditions": [
            {
                "name": about,
                "state": one.state,
                "since": iso(one.began.at),
                "evidence": described(about, one, curr),
            }
            for process in curr.settings.process
            for about in (process.usage_conditions if process.name == name else ())
            if (one := curr.conditions[about])
        ],
        "request": request.spelled() if request else None,
    }


def _why_waiting(name: str, why: str, curr: Snapshot) -> Iterator[str]:
    """How a process came down that waits for others, if `why` does not say it, and which of these somebody has stopped."""
    history = curr.process(name)
    needed = {process.name: process.depends_on for process in curr.settings.process}[name]
    missing = [other for other in needed if curr.process(other).up is None]
    if history.down is None or history.down_for(curr.now) or not missing:
        return
    if history.evidence not in why:
        yield f"{name} is down: {history.evidence}"
    for other in missing:
        if (stop := curr.process(other).stop) and stop.holds(curr.now):
            yield stop.words_about(other)


def past_status(log: EventReader, name: str, state: State) -> GuardedProcessStatus | None:
    """A process that is not guarded any more, as it was then; None if there never was one of this name."""
    history = state.processes.of.get(name)
    if history is None or not (last := newest(log, name, EVER_GUARDED)) or name in state.control.processes:
        return None
    ended = None
    for row in log.events(EventQuery(kinds=(SettingsLoaded.kind,)), newest_first=True):
        if row.seq < last.seq or name in (row.spelled()["data"] or {}).get("processes", ()):
            break
        ended = iso(row.at)
    was, data = "up" if last.kind == ProcessUp.kind else "down", last.spelled()["data"] or {}
    words = f"last known at {local_text(last.at)}: {was}, {data.get('evidence', '')}"
    life = (data.get("pid"), data.get("started"), last.boot)
    others = [other for other, one in state.processes.of.items() if (one.pid, one.started, one.boot) == life]
    if was == "up" and data.get("pid") and others and others[0] != name:  # of a port alone no pid is known
        words = f"{words}; process {data['pid']} is guarded as {others[0]} now"
    return {
        "name": name,
        "state": NOT_GUARDED,
        "pid": None,
        "since": ended,
        "restarts": history.restarts,
        "why": f"it is not in the settings any more; {words}",
    }


def _past_process(log: EventReader, status: GuardedProcessStatus) -> Told:
    request = newest(log, status["name"], tuple(REQUESTS))
    return {
        "kind": "process",
        **{word: status[word] for word in ("name", "state", "since", "why")},
        "held_by": None,
        "held_since": None,
        "held_or_earlier": False,
        "incident": None,
        "conditions": [],
        "request": request.spelled() if request else None,
    }


def _unrecorded(name: str, curr: Snapshot, status: HomeStatus) -> Told | None:
    """A condition that is held to be raised or cleared, while the log takes nothing; None if the log has it so, too."""
    raised = next((one for one in status["conditions"] if one["name"] == name), None)
    recorded = curr.conditions[name]
    if not status["log"]["unwritten"] or (raised is None) == (recorded is None):
        return None
    told: Told = {"kind": "condition", "name": name, "measures": [], "next": []}
    if raised is None:
        return {**told, "state": "cleared", "since": None, "why": "that it is over is not written yet"}
    state = f"raised ({raised['state']})" if raised["state"] else "raised"
    return {**told, "state": state, "since": raised["since"], "why": raised["evidence"]}


def _condition(name: str, told: Event | None, curr: Snapshot, status: HomeStatus | None) -> Told:
    common = {"kind": "condition", "name": name}
    if (one := curr.conditions[name]) is None:
        data = (told.spelled()["data"] if told else None) or {}
        since = iso(told.at) if told else None
        measures, is_unwatched = curr.conditions.last.get(name, ()), told and why_unwatched(told)
        state, words = "no longer watched" if is_unwatched else "cleared", data.get("evidence", "")
        # How old a file is, or that a program says so: it may be otherwise by now.
        if state == "cleared" and words:
            words = f"seen then: {words}"
        return {**common, "state": state, "since": since, "why": words,
                "measures": [_measure(measure, then=" then") for measure in measures],
                "next": [*_held_notices(name, curr)] if status else []}  # fmt: skip
    standing = [some for some in status["conditions"] if some["name"] == name] if status else []
    doubt = "" if status else "no daemon tells of it; last known: "
    held = standing[0].get("held") if standing else None
    words = condition_words(name, one, curr)  # a rule that takes no measure notes them, too
    notes = (note for note in _notes_about(name, curr) if not words or words not in note)
    return {
        **common,
        "held_by": held["by"] if held else None,
        "held_since": held["since"] if held else None,
        "held_or_earlier": bool(held and held.get("or_earlier")),
        "state": f"raised ({one.state})" if one.state else "raised",
        "since": iso(one.began.at),
        "why": f"{doubt}{words}",
        "measures": [_measure(measure) for measure in one.measures],
        "next": [] if doubt else [*notes, *_held_notices(name, curr)],
    }


def _measure(measure: Measure, then: str = "") -> Told:
    """A measure; `then` follows where it had no outcome yet: what is kept of a condition that is over is not changed."""
    outcome = f"{describe_measure(measure)}{then if measure.settled is None else ''}"
    return {"action": measure.action, "at": iso(measure.wished.at), "outcome": outcome}


def _notes_about(name: str, curr: Snapshot) -> Iterator[str]:
    """What the rules note about a condition; an endpoint's begins with its URL alone."""
    heads = [f"{one}: " for one in (name, name.partition(":")[2]) if one]
    for note in _folded(curr).notes:
        if head := next((head for head in heads if note.startswith(head)), None):
            yield note.removeprefix(head)


def _held_notices(name: str, curr: Snapshot, of_process: bool = False) -> Iterator[str]:
    """What holds back the notices about a condition or a process at this moment."""
    withheld: list[WithheldEffect] = []
    _folded(curr, withheld=withheld)
    for effect, why in withheld:
        is_about = name in subjects_of(effect.key) and is_of_process(effect.key) is of_process
        if effect.action == NOTIFY and is_about:
            paused = f"{effect.key} is held back by a pause of {curr.control.by}"
            yield paused if curr.control.paused else why.partition(": ")[2]


def _folded(
    curr: Snapshot, leave_out: Rule | None = None, withheld: list[WithheldEffect] | None = None
) -> Verdict:
    rules = [rule for rule in ALL_RULES if leave_out is None or rule_name(rule) != rule_name(leave_out)]
    verdict = run_synchronously(compose(rules, withheld=withheld)(curr, curr))
    assert verdict is not None, "the package's rules await nothing but what is inside them"
    return verdict


def _pulse(home: HomeContext) -> Told:
    status = home_status(home)
    daemon = status["daemon"]
    return {
        "kind": "pulse",
        "name": PULSE,
        "state": daemon_word(daemon),
        "since": failed["at"] if (failed := daemon.get("failed")) else daemon["since"],
        "why": "; ".join(_pulse_words(status))
        or ("see: upulse status" if is_wrong(status) else "nothing is wrong"),
    }


def _pulse_words(status: Mapping[str, Any]) -> Iterator[str]:
    if failed := status["daemon"].get("failed"):
        yield failed["why"]
    elif status["daemon"].get("died"):
        yield "it was killed, or the machine went down"
    elif status["daemon"]["state"] == "not-answering":
        yield f"process {status['daemon']['pid']} does not answer; see: upulse daemon logs"
    if paused := status["paused"]:
        yield f"paused by {paused['by']}{paused['why'] and ': '}{paused['why']}"
    if safe := status.get("safe_mode"):
        yield f"in safe mode after {safe['crashes']} starts that ended early: without {', '.join(safe['left_out'])}"
    if damage := status["log"]["damage"]:
        yield f"the log is damaged: {damage}"
    if shed := status.get("shed"):
        yield f"it does less: {shed['evidence']}"
    for rule, fault in status.get("raising", {}).items():
        yield f"the rule {rule} raises: {fault}"
    for capability, fault in status.get("set_aside", {}).items():
        yield f"{capability} is set aside: {fault}"
    for rule, why in (status.get("engine") or {"quarantined": {}})["quarantined"].items():
        yield f"the rule {rule} is passed over: {why}"
    for fault in (*status.get("settings_refused", ()), *status.get("settings_faults", ())):
        if not failed or fault not in failed["why"]:
            yield f"settings are refused: {fault}"
    for condition in status["conditions"]:
        yield f"{condition['name']}: {condition['evidence']}"
    for process in status["processes"]:
        if process["state"] not in WELL:
            yield f"{process['name']} is {process['state']}"


def newest(log: EventReader, subject: str, kinds: tuple[str, ...], before: int | None = None) -> Event | None:
    """The newest event of these kinds about a subject, before a row if one is given."""
    found = log.events(EventQuery(subject=subject, kinds=kinds), newest_first=True)
    return next((row for row in found if before is None or row.seq < before), None)
