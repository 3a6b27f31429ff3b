"""Why a process, a condition, a silence or Pulse itself is as it is now, whether or not anything was ever done about it."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from pulse_core.app.context import HomeContext
from pulse_core.app.incidents import incidents
from pulse_core.app.state import snapshot
from pulse_core.app.status import home_status
from pulse_core.composition import ALL_RULES, current_holds
from pulse_core.model.errors import PulseError
from pulse_core.model.event import Event
from pulse_core.model.glob import glob_matches
from pulse_core.model.kinds import ConditionCleared, ConditionRaised, Effect
from pulse_core.model.moment import iso
from pulse_core.model.verdict import Verdict
from pulse_core.ports.readers import EventQuery, EventReader
from pulse_core.projections.conditions import Measure
from pulse_core.projections.incidents import PULSE, REQUESTS
from pulse_core.projections.state import Snapshot
from pulse_core.rules import compose
from pulse_core.rules.onion import rule_name, run_synchronously
from pulse_core.rules.survival.holds import longest_hold
from pulse_core.rules.survival.process_watchdog import restart_key
from pulse_core.rules.survival.resource_guard import describe_measure
from pulse_core.silences.listing import find_silence, list_silences
from pulse_core.silences.rule import silence as silence_rule

Told = dict[str, Any]

CONDITION = (ConditionRaised.kind, ConditionCleared.kind)


def subject_report(home: HomeContext, log: EventReader, name: str) -> Told | None:
    """What the name means, a process, a condition, a silence or `pulse`, in this order; None if it is none of them.

    `kind`, `name`, `state`, `since` and `why` are told of each; the rest depends on the kind.
    """
    curr = snapshot(home, None).snapshot
    if any(process.name == name for process in curr.settings.process):
        return _process(home, log, name, curr)
    told = newest(log, name, CONDITION)
    if told or curr.conditions[name]:
        return _condition(name, told, curr)
    if found := _silence(name, curr):
        return found
    return _pulse(home) if name == PULSE else None


def _process(home: HomeContext, log: EventReader, name: str, curr: Snapshot) -> Told:
    standing = next((one for one in home_status(home)["processes"] if one["name"] == name), None)
    down = curr.process(name).down
    told = incidents(home, down.at) if down else ()
    ongoing = [one for one in told if (one.about, one.subject, one.over) == ("process", name, False)]
    held = longest_hold(restart_key(name), current_holds(curr))
    request = newest(log, name, tuple(REQUESTS))
    return {
        "kind": "process",
        "name": name,
        "state": standing["state"] if standing else "unknown",
        "since": standing["since"] if standing else None,
        "why": standing["why"] if standing else "the daemon does not guard it yet; see: upulse daemon reload",
        "held_by": held.whose if held else f"a pause of {curr.control.by}" if curr.control.paused else None,
        "incident": ongoing[-1].spelled() if ongoing else None,
        "request": request.spelled() if request else None,
    }


def _condition(name: str, told: Event | None, curr: Snapshot) -> Told:
    common = {"kind": "condition", "name": name}
    if (one := curr.conditions[name]) is None:
        data = (told.spelled()["data"] if told else None) or {}
        since = iso(told.at) if told else None
        measures = curr.conditions.last.get(name, ())
        return {**common, "state": "cleared", "since": since, "why": data.get("evidence", ""),
                "measures": [_measure(measure) for measure in measures], "next": []}  # fmt: skip
    return {
        **common,
        "state": f"raised ({one.state})" if one.state else "raised",
        "since": iso(one.since.at),
        "why": one.evidence,
        "measures": [_measure(measure) for measure in one.measures],
        "next": list(_notes_about(name, curr)),
    }


def _measure(measure: Measure) -> Told:
    return {"action": measure.action, "at": iso(measure.wished.at), "outcome": describe_measure(measure)}


def _notes_about(name: str, curr: Snapshot) -> Iterator[str]:
    """What the rules note about a condition; an endpoint's begins with its URL alone."""
    heads = [f"{one}: " for one in (name, name.partition(":")[2]) if one]
    for note in _folded(curr).notes:
        if head := next((head for head in heads if note.startswith(head)), None):
            yield note.removeprefix(head)


def _silence(name: str, curr: Snapshot) -> Told | None:
    listed = list_silences(curr.state, curr.settings, curr.now)
    found: Mapping[str, Any] | None = None
    with suppress(PulseError):
        found = find_silence(listed["silences"], name)
    everything: Sequence[Mapping[str, Any]] = (*listed["silences"], *listed["recurring"])
    found = found or next((one for one in everything if one["match"] == name), None)
    if found is None:
        return None
    is_active = found.get("active", True)
    held = [one for one in _wished_without_silences(curr) if glob_matches(found["match"], one.key)]
    return {
        "kind": "silence",
        "name": found["match"],
        "state": "active" if is_active else "waiting",
        "since": found.get("since"),
        "why": found["why"],
        "by": found.get("by", "the settings"),
        "ends": iso(curr.now.at + round(found["left_s"] * 1e6)) if is_active else None,
        "next": found.get("next"),
        "holds_back": [{"key": one.key, "reason": one.reason} for one in held] if is_active else [],
    }


def _wished_without_silences(curr: Snapshot) -> Sequence[Effect]:
    """What Pulse's own rules would wish for if there were no silence."""
    return _folded(curr, leave_out=rule_name(silence_rule)).effects


def _folded(curr: Snapshot, leave_out: str = "") -> Verdict:
    rules = [rule for rule in ALL_RULES if rule_name(rule) != leave_out]
    verdict = run_synchronously(compose(rules)(curr, curr))
    assert verdict is not None, "the package's rules await nothing but what is inside them"
    return verdict


def _pulse(home: HomeContext) -> Told:
    status = home_status(home)
    daemon = status["daemon"]
    return {
        "kind": "pulse",
        "name": PULSE,
        "state": "died" if daemon.get("died") else daemon["state"],
        "since": daemon["since"],
        "why": "; ".join(_pulse_words(status)) or "nothing is wrong",
    }


def _pulse_words(status: Mapping[str, Any]) -> Iterator[str]:
    if paused := status["paused"]:
        yield f"paused by {paused['by']}{paused['why'] and ': '}{paused['why']}"
    if safe := status.get("safe_mode"):
        yield f"in safe mode after {safe['crashes']} starts that ended early: without {', '.join(safe['left_out'])}"
    if damage := status["log"]["damage"]:
        yield f"the log is damaged: {damage}"
    if shed := status.get("shed"):
        yield f"it does less: {shed['evidence']}"
    for fault in (*status.get("settings_refused", ()), *status.get("settings_faults", ())):
        yield f"settings are refused: {fault}"
    for condition in status["conditions"]:
        yield f"{condition['name']}: {condition['evidence']}"


def newest(log: EventReader, subject: str, kinds: tuple[str, ...], before: int | None = None) -> Event | None:
    """The newest event of these kinds about a subject, before a row if one is given."""
    found = log.events(EventQuery(subject=subject, kinds=kinds), newest_first=True)
    return next((row for row in found if before is None or row.seq < before), None)
