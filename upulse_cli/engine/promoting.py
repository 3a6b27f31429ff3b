"""From staging to production: what is to be promoted, whether it may be, and what the daemon says to it."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

from pulse_adapters.config.home import Home
from pulse_adapters.git.author import whoever
from pulse_adapters.git.locks import alone
from pulse_adapters.git.repository import Repository
from pulse_adapters.git.revisions import RevisionStore
from pulse_core.app.append import AppendRequest
from pulse_core.model.errors import PulseError
from pulse_core.model.kinds import EnginePromoted
from pulse_core.ports import Revision
from pulse_core.ports.code_checks import GateFailed
from pulse_core.ports.engine_repository import NothingToPromote, RejectedFiles
from upulse_cli.engine.asking import Spelled, asked, demand_engine, engine_of, refuse
from upulse_cli.engine.gates import Candidate, Passed, chosen, passing
from upulse_cli.engine.mainline import LOOK, at_rest, moved
from upulse_cli.engine.trying import load, replayed
from upulse_cli.wiring.engine import code_checks


@dataclass(frozen=True)
class Plan:
    """How somebody wants to promote. only: no other gates; skip: gates that are left out, and why; note: is told what
    else there is to know, in sentences."""

    message: str
    author: str = field(default_factory=whoever)
    only: Sequence[str] = ()
    skip: Mapping[str, str] = field(default_factory=dict)
    tell: Callable[[Passed], None] = lambda passed: None
    note: Callable[[str], None] = lambda words: None


class Promoted(NamedTuple):
    """The commit, its gates, and the daemon's answer; none if there is no daemon yet."""

    commit: str
    gates: Sequence[Passed]
    answer: Spelled | None


class NotPromoted(GateFailed):
    """A commit that did not pass. gates: those that it was shown to, the last of which said no."""

    def __init__(self, words: str, commit: str, gates: Sequence[Passed]) -> None:
        super().__init__(words)
        self.commit, self.gates = commit, gates


def promote(home: Home, plan: Plan) -> Promoted:
    """Merge staging, pass the gates, and have the daemon take it. Nothing is changed if anything says no."""
    chosen(plan.only, plan.skip)
    demand_engine(home)
    repository = Repository(home.path)
    answered = at_rest(home, repository, plan.note)
    repository.mend()
    repository.commit_staging(plan.message, plan.author)
    previous = in_force(home, repository)
    try:
        commit = repository.candidate(plan.message, plan.author)
    except NothingToPromote:
        if answered is None or answered["kind"] != EnginePromoted.kind:
            raise
        return Promoted(
            answered["subject"], (), answered
        )  # this was asked for before, and has come into force now
    if returning := repository.returning(commit):
        plan.note(brings_back(returning))
    path = RevisionStore(home.path).ensure(commit)
    candidate = Candidate(
        home, Revision(commit, str(path)), previous, code_checks(home), partial(load, home), replayed
    )
    gates = passed(candidate, plan)
    changes = next((gate.words for gate in gates if gate.name == "replay"), "")
    data = {
        "previous": previous,
        "why": plan.message,
        "gates": [gate.told() for gate in gates],
        "changes": changes,
    }
    _, answer = asked(home, AppendRequest("promote-requested", commit, data))
    if answer:
        refuse(answer)
    return Promoted(commit, gates, answer)


def passed(candidate: Candidate, plan: Plan) -> Sequence[Passed]:
    """The words of the gates, told as they come. Raises NotPromoted."""
    gates: list[Passed] = []
    try:
        for one in passing(candidate, plan.only, plan.skip):
            plan.tell(one)
            gates.append(one)
    except GateFailed as failed:
        raise NotPromoted(str(failed), candidate.revision.commit, gates) from failed
    return gates


def brings_back(what: RejectedFiles) -> str:
    """What a promote brings back of a commit that was rejected, in a sentence."""
    unchanged = f"unchanged: {', '.join(what.unchanged)}" if what.unchanged else ""
    changed = f"changed since: {', '.join(what.changed)}" if what.changed else ""
    return f"this brings back what was taken back ({what.rejected[:12]}); {'; '.join(filter(None, (unchanged, changed)))}"


def in_force(home: Home, repository: Repository) -> str:
    """The commit in force, which main must be; raises PulseError if somebody moved main by hand."""
    engine, main = engine_of(home), repository.head()
    if engine.requests or (engine.commit != main and repository.contains(engine.commit, main)):
        raise PulseError("another promote or rollback is under way; wait for it, then try again")
    if engine.commit and engine.commit != main:
        raise PulseError(moved(home, main, engine.commit))
    return engine.commit or main


def rollback(home: Home, to: str, why: str) -> Spelled | None:
    """Have the daemon go back to an earlier commit (the one before if none is named); its answer, if there is one."""
    commit = Repository(home.path).resolve(to) if to else ""
    _, answer = asked(home, AppendRequest("rollback-requested", commit, {"why": why}))
    if answer:
        refuse(answer)
    return answer


FOLLOWS = 10.0
"""Seconds to wait for main, after the daemon has said that an earlier commit is in force."""


def followed(home: Home, answer: Spelled) -> str:
    """What became of staging after a rollback, in a sentence."""
    repository, until = Repository(home.path), time.monotonic() + FOLLOWS
    while repository.head() != answer["subject"]:
        if time.monotonic() > until:
            return "main does not follow yet; see: upulse engine status"
        time.sleep(LOOK)
    with alone(home.path):  # whoever moves main has moved staging, too, when it is done
        staging = repository.staging()
    if staging.taken_back or staging.behind:
        return "\n".join(staging.advice())
    kept = answer["data"]["kept_as"]
    return f"staging follows; take your work from {kept} again with: git -C {staging.path} restore --source {kept} ."
