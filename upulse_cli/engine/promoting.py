"""From staging to production: what is to be promoted, whether it may be, and what the daemon says to it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from pulse_adapters.config.home import Home
from pulse_adapters.git.author import whoever
from pulse_adapters.git.repository import Repository
from pulse_adapters.git.revisions import Revisions
from pulse_core.model.errors import PulseError
from pulse_core.ports import Revision
from upulse_cli.access import Wish
from upulse_cli.engine.asking import Spelled, asked, demand_engine, engine_of, refuse
from upulse_cli.engine.gates import Candidate, Passed, passing
from upulse_cli.engine.trying import load, replayed


@dataclass(frozen=True)
class Plan:
    """How somebody wants to promote. only: no other gates; skip: gates that are left out, and why."""

    message: str
    author: str = field(default_factory=whoever)
    only: Sequence[str] = ()
    skip: Mapping[str, str] = field(default_factory=dict)
    tell: Callable[[Passed], None] = lambda passed: None


class Promoted(NamedTuple):
    """The commit, its gates, and the daemon's answer; none if there is no daemon yet."""

    commit: str
    gates: Sequence[Passed]
    answer: Spelled | None


def promote(home: Home, plan: Plan) -> Promoted:
    """Merge staging, pass the gates, and have the daemon take it. Nothing is changed if anything says no."""
    demand_engine(home)
    repository = Repository(home.path)
    repository.mend()
    repository.commit_staging(plan.message, plan.author)
    commit = repository.candidate(plan.message, plan.author)
    previous = in_force(home, repository)
    path = Revisions(home.path).ensure(commit)
    candidate = Candidate(home, Revision(commit, str(path)), previous, load, replayed)
    gates = []
    for passed in passing(candidate, plan.only, plan.skip):
        plan.tell(passed)
        gates.append(passed)
    changes = next((gate.words for gate in gates if gate.name == "replay"), "")
    data = {
        "previous": previous,
        "why": plan.message,
        "gates": [gate.told() for gate in gates],
        "changes": changes,
    }
    _, answer = asked(home, Wish("promote-requested", commit, data))
    if answer:
        refuse(answer)
    return Promoted(commit, gates, answer)


def in_force(home: Home, repository: Repository) -> str:
    """The commit in force, which main must be; raises PulseError if somebody moved main by hand."""
    engine, main = engine_of(home), repository.head()
    if engine.requests:
        raise PulseError("a promote or rollback is asked for already; it is answered when a daemon runs")
    if engine.commit and engine.commit != main:
        raise PulseError(
            f"main is {main[:12]}, but {engine.commit[:12]} is in force; put your commits into staging, then: "
            f"git -C {home.path / 'engine'} reset --keep {engine.commit[:12]}"
        )
    return engine.commit or main


def rollback(home: Home, to: str, why: str) -> Spelled | None:
    """Have the daemon go back to an earlier commit (the one before if none is named); its answer, if there is one."""
    commit = Repository(home.path).resolve(to) if to else ""
    _, answer = asked(home, Wish("rollback-requested", commit, {"why": why}))
    if answer:
        refuse(answer)
    return answer
