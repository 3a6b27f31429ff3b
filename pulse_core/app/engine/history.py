"""How the engine stands, and what became of it: who promoted what, why, and how it went since."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pulse_core.app.engine.context import WorkflowContext
from pulse_core.app.engine.promote import main_moved_by_hand
from pulse_core.app.state import current_state
from pulse_core.model.errors import NotAnswering, PulseError
from pulse_core.model.event import Event
from pulse_core.model.json_answers import EngineStatusJson, TurnJson, TurnPageJson
from pulse_core.model.kinds import (
    EngineLoaded,
    EnginePromoted,
    EngineRolledBack,
    ErrorReported,
    RuleQuarantined,
)
from pulse_core.ports.readers import EventQuery

TURNS = (EnginePromoted.kind, EngineRolledBack.kind)
KINDS = (*TURNS, ErrorReported.kind, RuleQuarantined.kind, EngineLoaded.kind)
Told = Mapping[str, Any]


def turns(engine: WorkflowContext, limit: int) -> Sequence[TurnJson]:
    """The newest promotes and rollbacks with what happened until the next one, newest first."""
    with engine.home.events() as log:
        return turns_in(map(Event.spelled, log.events(EventQuery(kinds=KINDS))))[-limit:][::-1]


def turns_in(events: Iterable[Told]) -> list[TurnJson]:
    """The promotes and rollbacks with what happened until the next one, oldest first."""
    found: list[TurnJson] = []
    of: dict[str, TurnJson] = {}
    for event in events:
        if event["kind"] in TURNS:
            found.append(turn_of(event))
            of[found[-1]["commit"]] = found[-1]
        elif found:
            # Errors are recorded with their number up to ten minutes later: other turns may have come before.
            commit = (event["data"] or {}).get("commit", "") if event["kind"] == ErrorReported.kind else ""
            count_event(of.get(commit, found[-1]), event)
    return found


def turn_of(event: Told) -> TurnJson:
    """A turn as it was recorded; nothing has happened since."""
    data = event["data"] or {}
    return {
        "commit": event["subject"],
        "at": event["at"],
        "kind": event["kind"],
        "by": data.get("asked_by") or event["actor"],
        "why": data.get("why", ""),
        "gates": data.get("gates", []),
        "changes": data.get("changes", ""),
        "previous": data.get("previous", data.get("rejected", "")),
        "to": data.get("to", ""),
        "errors": 0,
        "quarantined": [],
        "rules": [],
    }


def count_event(turn: TurnJson, event: Told) -> None:
    """The turn with one more thing that happened since."""
    data = event["data"] or {}
    if event["kind"] == ErrorReported.kind:
        if is_of_engine(turn, event):
            turn["errors"] += 1 + int(data.get("repeats", 0))
    elif event["kind"] == RuleQuarantined.kind:
        turn["quarantined"].append(event["subject"])
    else:
        turn["rules"] = data.get("rules", [])


def is_of_engine(turn: Mapping[str, Any], event: Told) -> bool:
    """Whether an error is of the engine while this turn's commit was in force; old logs don't name the commit."""
    commit = (event["data"] or {}).get("commit", "")
    if commit:
        return bool(commit == turn["commit"])
    return str(event["subject"]).startswith(("rule:", "projection:", "engine"))


def turn(engine: WorkflowContext, word: str) -> TurnPageJson:
    """One turn with its files' difference; raises PulseError if that commit was never in force."""
    repository = engine.repository
    commit = repository.resolve(word)
    for one in turns(engine, 1_000_000):
        if one["commit"] == commit:
            before = one["previous"]
            return {**one, "diff": repository.diff(before, commit) if before else ""}
    raise PulseError(f"{commit[:12]} was never in force; upulse engine log lists what was")


def engine_status(engine: WorkflowContext) -> EngineStatusJson:
    """`running`: what the daemon says of its host (None without one); `log`, `main` and `staging`: the rest."""
    now, repository = current_state(engine.home).engine, engine.repository
    staging = repository.staging()
    return {
        "running": _running(engine),
        "commit": now.commit or None,
        "previous": now.previous or None,
        "good": now.last_good(engine.home.clock.now()) or None,
        "main": repository.head(),
        "moved": main_moved_by_hand(engine, now.commit),
        "errors": len(now.errors),
        "breakdowns": len(now.breakdowns),
        "quarantined": dict(now.quarantined),
        "disabled": now.disabled_status(),
        "requests": [event.subject for event in now.requests.values()],
        "staging": {
            "commit": staging.commit,
            "dirty": list(staging.dirty),
            "ahead": staging.ahead,
            "behind": staging.behind,
            "advice": list(staging.advice()),
        },
    }


def _running(engine: WorkflowContext) -> Any:
    try:
        return engine.home.daemon.status().get("engine")
    except NotAnswering:
        return None
