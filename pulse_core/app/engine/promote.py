"""From staging to production and back: what is promoted, whether it may be, and what the daemon says to it.

A promote asks, and the daemon does. It prepares a commit that nothing names yet, shows it to the gates, and has a
`promote-requested` recorded; the daemon loads the commit into a new host, swaps hosts, and answers by an event. Only
then does main follow. So a command that is killed at any point leaves either nothing, or a request that is answered:
the next promote waits for that answer before it begins. For the same reason main may be a moment behind the log, which
is no fault; main that is elsewhere was moved by hand, which is one.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from pulse_core.app.append import append
from pulse_core.app.context import HomeContext
from pulse_core.app.engine.candidate_checks import Candidate, GateResult, chosen_gates, pass_gates
from pulse_core.app.engine.context import WorkflowContext
from pulse_core.app.follow import follow
from pulse_core.app.state import current_state
from pulse_core.model.errors import NotAnswering, PulseError
from pulse_core.model.kinds import EnginePromoted, PromoteRequested, RollbackRequested
from pulse_core.model.moment import US_PER_SECOND, Moment
from pulse_core.model.text import encodable
from pulse_core.ports.code_checks import GateFailed
from pulse_core.ports.engine_repository import EngineRepository, NothingToPromote, StagingState
from pulse_core.ports.readers import EventQuery
from pulse_core.projections.engine import ANSWERS, Engine

PATIENCE, LOOK = 30.0, 0.1
"""Seconds to wait for what is under way, and between two looks."""
ROLLBACK_UNDER_WAY = 20 * US_PER_SECOND
"""How long a rollback that survival wished for may be under way; later it has failed, or is held back."""
OWN_PACE = 2.0
"""Seconds that the daemon has to let main follow; then the command does it."""
MOST_NAMES = 16_000
"""Characters in the names of changed files; beyond that each file counts as changed."""
FOLLOWS = 10.0
"""Seconds to wait for main, after the daemon has said that a commit is in force."""

SpelledEvent = Mapping[str, Any]
"""An event as JSON values."""


@dataclass(frozen=True)
class Plan:
    """How somebody wants to promote. author: as `NAME <EMAIL>`; only: no other gates; skip: gates that are left out,
    and why; tell: is told each gate's result as it comes; note: is told what else there is to know, in sentences."""

    message: str
    author: str
    only: Sequence[str] = ()
    skip: Mapping[str, str] = field(default_factory=dict)
    tell: Callable[[GateResult], None] = lambda result: None
    note: Callable[[str], None] = lambda words: None


class Promoted(NamedTuple):
    """The commit, its gates, and the daemon's answer; none if there is no daemon yet."""

    commit: str
    gates: Sequence[GateResult]
    answer: SpelledEvent | None


class NotPromoted(GateFailed):
    """A commit that did not pass. gates: those that it was shown to, the last of which said no."""

    def __init__(self, words: str, commit: str, gates: Sequence[GateResult]) -> None:
        super().__init__(words)
        self.commit, self.gates = commit, gates


class Proposal(NamedTuple):
    """A commit that somebody proposes, and its gates; whether it stays in staging, and whether it is in force.

    left: files that were written for it and not taken back, since somebody has changed or promoted them meanwhile.
    """

    commit: str
    gates: Sequence[GateResult]
    in_staging: bool
    in_force: bool
    left: Sequence[str] = ()


def promote(engine: WorkflowContext, plan: Plan) -> Promoted:
    """Merge staging, pass the gates, and have the daemon take it. Nothing is changed if anything says no.

    Raises NotPromoted if a gate does.
    """
    chosen_gates(plan.only, plan.skip)
    demand_engine(engine.home)
    repository = engine.repository
    now, answered = wait_for_answers(engine, plan.note)
    repository.mend()
    repository.commit_staging(plan.message, plan.author)
    previous = commit_in_force(engine, now)
    try:
        commit = repository.candidate(plan.message, plan.author)
    except NothingToPromote:
        if answered is None or answered["kind"] != EnginePromoted.kind:
            raise
        # It was asked for before, by a command that was killed, and has come into force now.
        return Promoted(answered["subject"], (), answered)
    if returning := repository.returning(commit):
        parts = {"unchanged": returning.unchanged, "changed since": returning.changed}
        words = "; ".join(f"{how}: {', '.join(files)}" for how, files in parts.items() if files)
        plan.note(f"this brings back what was taken back ({returning.rejected[:12]}); {words}")
    gates = passed_gates(engine, plan, commit, previous)
    data = {
        "previous": previous,
        "why": plan.message,
        "gates": [gate.summary() for gate in gates],
        "changes": next((gate.words for gate in gates if gate.name == "replay"), ""),
        "changed": changed_files(repository, previous, commit) if previous else None,
    }
    answer = request(engine.home, PromoteRequested.kind, commit, data)
    if answer:
        try:
            staging_that_follows(repository, commit)
        except PulseError as error:  # the commit is in force, however staging is
            plan.note(str(error))
    return Promoted(commit, gates, answer)


def passed_gates(engine: WorkflowContext, plan: Plan, commit: str, previous: str) -> Sequence[GateResult]:
    """What all gates say to a commit that would replace the previous one; raises NotPromoted if one says no."""
    gates: list[GateResult] = []
    before = engine.repository.ensure(previous) if previous else None
    try:
        for one in pass_gates(
            engine, Candidate(engine.repository.ensure(commit), before), plan.only, plan.skip
        ):
            plan.tell(one)
            gates.append(one)
    except GateFailed as failed:
        raise NotPromoted(str(failed), commit, gates) from failed
    return gates


def try_staging(engine: WorkflowContext, plan: Plan) -> tuple[str, Sequence[GateResult]]:
    """Commit staging, and show what main would be to the gates; that commit, and what they said. Nothing is promoted.

    Raises NotPromoted if one says no.
    """
    repository = engine.repository
    repository.commit_staging(plan.message, plan.author)
    commit = repository.candidate(plan.message, plan.author)
    return commit, passed_gates(engine, plan, commit, repository.head())


def changed_files(repository: EngineRepository, old: str, new: str) -> Sequence[str] | None:
    """The files that are not the same in two commits, as they can be recorded; None if they are too many for that."""
    names = [*map(encodable, repository.differing(old, new))]
    return sorted(names) if sum(map(len, names)) <= MOST_NAMES else None


def commit_in_force(engine: WorkflowContext, now: Engine) -> str:
    """The commit in force, which main must be; raises PulseError if somebody moved main by hand.

    now: what the log said lately; it is read again only where main is elsewhere, since another promote may have come.
    """
    repository = engine.repository
    main = repository.head()
    if now.commit and now.commit != main:
        now = current_state(engine.home).engine
    if now.requests or (now.commit != main and repository.contains(now.commit, main)):
        raise PulseError("another promote or rollback is under way; wait for it, then try again")
    if now.commit and now.commit != main:
        raise PulseError(main_moved_message(engine, main, now.commit))
    return now.commit or main


def rollback(engine: WorkflowContext, to: str, why: str) -> SpelledEvent | None:
    """Have the daemon go back to an earlier commit (the one before if none is named); its answer, if there is one."""
    commit = engine.repository.resolve(to) if to else ""
    return request(engine.home, RollbackRequested.kind, commit, {"why": why})


def staging_that_follows(repository: EngineRepository, commit: str) -> StagingState:
    """Wait until main, the files of engine/ and staging follow a commit that came into force: whoever works on them next
    shall find it there, and no lock of the daemon's git. Raises PulseError if they don't, or can't be looked at."""
    until = time.monotonic() + FOLLOWS
    while (main := repository.head_in_files() or repository.head()) != commit:
        if repository.contains(main, commit):
            break  # it was taken back already
        if time.monotonic() > until:
            raise PulseError("main does not follow yet; see: upulse engine status")
        time.sleep(LOOK)
    try:
        return repository.settled_staging()
    except PulseError as error:
        raise PulseError(f"staging can't be looked at: {error}") from error


def staging_after_rollback(repository: EngineRepository, answer: SpelledEvent) -> str:
    """What became of staging after a rollback, in a sentence."""
    try:
        staging = staging_that_follows(repository, answer["subject"])
    except PulseError as error:  # the rollback is done, however staging is
        return str(error)
    if staging.taken_back or staging.behind:
        return "\n".join(staging.advice())
    kept = answer["data"]["kept_as"]
    return f"staging follows; take your work from {kept} again with: git -C {staging.path} restore --source {kept} ."


# What the daemon is asked, and what it says


def demand_engine(home: HomeContext) -> None:
    """Raise PulseError if the daemon that runs would never answer."""
    try:
        status = home.daemon.status()
    except NotAnswering:
        return
    if status["daemon"]["state"] == "running" and not status.get("engine"):
        raise PulseError(
            "this daemon runs no engine; make one with: upulse init, then: upulse daemon restart"
        )


def request(home: HomeContext, kind: str, commit: str, data: Mapping[str, Any]) -> SpelledEvent | None:
    """Have a request recorded, and wait for the answer; None if no daemon runs, or none stays up: a later one answers.

    Raises PulseError if the answer is no.
    """
    demand_engine(home)
    asked = append(home, kind, commit, data)
    if not asked.by_daemon:
        return None
    events = follow(home, int(asked.event["seq"]), ANSWERS, brief=True, patience=PATIENCE)
    answer = next((event for event in events if event["cause"] == asked.event["id"]), None)
    if answer is None:
        return None
    if answer["kind"] == "promote-refused":
        raise PulseError(f"the engine stays as it is: {answer['data']['why']}")
    return answer


# Whether main is what the log calls in force


def main_moved_message(engine: WorkflowContext, main: str, commit: str) -> str:
    """What is said of a main that somebody moved."""
    home = engine.home.layout.path
    return (
        f"main was moved by hand to {main[:12]}; {commit[:12]} is in force, and stays so. Take what is new into staging: "
        f"git -C {home / 'staging'} merge main; then put main back: "
        f"git -C {home / 'engine'} reset --keep {commit[:12]}"
    )


def main_moved_by_hand(engine: WorkflowContext, commit: str) -> str:
    """The same, if main is elsewhere; git is asked only then, since main may be a moment behind."""
    repository = engine.repository
    main = repository.head_in_files()
    if not main or not commit or main == commit or repository.contains(commit, main):
        return ""
    return main_moved_message(engine, main, commit)


def wait_for_answers(
    engine: WorkflowContext, note: Callable[[str], None]
) -> tuple[Engine, SpelledEvent | None]:
    """Wait until what was asked for is answered and main has followed; how the engine stands then, and the last answer.

    The answer is None if there was nothing to wait for. Raises PulseError if no daemon runs that would answer, or if
    it takes too long.
    """
    repository = engine.repository
    began, told, waited = time.monotonic(), "", dict[str, int]()
    while True:
        now, waits = current_state(engine.home).engine, time.monotonic() - began
        runs = engine.home.daemon.lock_holder() is not None
        waited |= {id_: event.seq for id_, event in now.requests.items()}
        if words := pending_request(now, runs, engine.home.clock.now()):
            if not runs:
                raise PulseError(f"{words}; it is answered when a daemon runs: upulse daemon start")
            if waits > PATIENCE:
                raise PulseError(f"{words}, and not done after {PATIENCE:g} s; try again later")
        elif (
            now.commit and now.commit != (main := repository.head()) and repository.contains(now.commit, main)
        ):
            words = "main does not yet follow what is in force"
            if not runs or waits > OWN_PACE:
                repository.point_main(now.commit, main)
                continue
        else:
            return now, _answer(engine, waited)
        if told != words:
            note(f"{words}; waiting for it")
            told = words
        time.sleep(LOOK)


def pending_request(now: Engine, runs: bool, moment: Moment) -> str:
    """What the log waits for, in words; empty if nothing. runs: whether a daemon does, without which nothing rolls back."""
    if now.requests:
        return "a promote or rollback is asked for already"
    is_wished = now.asked is not None and moment.since(now.asked) < ROLLBACK_UNDER_WAY
    return "a rollback is under way" if is_wished and runs else ""


def _answer(engine: WorkflowContext, waited: Mapping[str, int]) -> SpelledEvent | None:
    """The last answer to these requests."""
    if not waited:
        return None
    with engine.home.events() as log:
        query = EventQuery(since_seq=min(waited.values()), kinds=tuple(ANSWERS))
        answers = [event.spelled() for event in log.events(query) if event.cause in waited]
    return answers[-1] if answers else None
