"""The gates that a commit must pass before it is promoted. Each checks its files or runs it; none changes anything."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from pulse_core.app.engine.change_summary import changes_in_words, excess_in_words
from pulse_core.app.engine.context import WorkflowContext
from pulse_core.app.engine.replay import replay_ticks
from pulse_core.model.errors import PulseError, UnknownName
from pulse_core.model.event import Event
from pulse_core.model.text import count
from pulse_core.ports.code_checks import GateFailed, GateSkipped
from pulse_core.ports.engine import LoadedRevision, ReservedNames, Revision
from pulse_core.projections.engine import fault_words
from pulse_core.projections.state import Snapshot

DAY_US = 86_400_000_000


class GateResult(NamedTuple):
    """One gate's word, whose first line says it all. outcome: passed, skipped or failed; took: seconds."""

    name: str
    outcome: str
    words: str
    took: float

    def summary(self) -> str:
        """As it is recorded."""
        first, *_ = self.words.splitlines() or [""]
        return f"{self.name} {self.outcome}" + (f": {first}" if first else "")


class Candidate(NamedTuple):
    """The commit to promote, and the one that it would replace; None if nothing is in force."""

    revision: Revision
    previous: Revision | None = None


def loads(engine: WorkflowContext, candidate: Candidate) -> str:
    """A rule host takes it, and an action host what of it senses and acts."""
    loaded = asyncio.run(_loaded(engine, candidate.revision))
    projections = f", {count(len(loaded.projections), 'projection')}" if loaded.projections else ""
    return count(len(loaded.rules), "rule") + projections


async def _loaded(engine: WorkflowContext, revision: Revision) -> LoadedRevision:
    """What the hosts find in it. Raises CannotLoad; GateFailed for what the action host would leave out."""
    host = await engine.rule_hosts.start(revision, Snapshot(0, engine.home.clock.now()), no_history, {})
    try:
        loaded = host.loaded
    finally:
        await host.close()
    if loaded.watchers or loaded.executors:
        memory = engine.home.settings().settings.engine.memory
        actions = await engine.action_hosts(dict).start(revision, memory, ReservedNames(), lambda fault: None)
        await actions.close()
        if wrong := [fault for fault in actions.faults if not fault.whose.startswith("plugin:")]:
            raise GateFailed("\n".join(f"{fault.whose}: {fault.message}" for fault in wrong))
    return loaded


async def no_history(seq: int) -> AsyncIterator[Sequence[Event]]:
    """A log that holds nothing."""
    return
    yield ()


def replay(engine: WorkflowContext, candidate: Candidate) -> str:
    """The last day is folded through the old rules and the new ones; what would have been different.

    Raises GateFailed for faults that are new, and for effects that are too many.
    """
    if candidate.previous is None:
        raise GateSkipped("there are no rules in force yet to compare with")
    since = time.time_ns() // 1000 - DAY_US
    try:
        (before, after), _ = asyncio.run(
            replay_ticks(engine, since, (candidate.previous, candidate.revision))
        )
    except PulseError as error:
        raise GateSkipped(str(error)) from error
    known = set(map(fault_words, before.faults))
    if faults := [fault for fault in after.faults if fault_words(fault) not in known]:
        raise GateFailed(f"over {after.ticks} recorded ticks: {faults[0]}")
    if words := excess_in_words(before, after, engine.home.settings().settings.engine.new_effects_per_hour):
        raise GateFailed(words)
    changed = engine.repository.differing(candidate.previous.commit, candidate.revision.commit)
    return changes_in_words(before, after, changed)


Gate = Callable[[WorkflowContext, Candidate], str]
GATES: Mapping[str, Gate] = {
    "compiles": lambda engine, candidate: engine.checks().compiles(candidate.revision.path),
    "types": lambda engine, candidate: engine.checks().types(candidate.revision.path),
    "loads": loads,
    "tests": lambda engine, candidate: engine.checks().tests(candidate.revision.path),
    "replay": replay,
}


def pass_gates(
    engine: WorkflowContext, candidate: Candidate, only: Sequence[str] = (), skip: Mapping[str, str] = {}
) -> Iterator[GateResult]:
    """Each gate's result as it is passed, and that of the first that is not; then GateFailed. skip: why, by name."""
    for name, gate in chosen_gates(only, skip).items():
        began = time.monotonic()
        if name in skip:
            yield GateResult(name, "skipped", skip[name], 0.0)
            continue
        try:
            words, outcome = gate(engine, candidate), "passed"
        except GateSkipped as why:
            words, outcome = str(why), "skipped"
        except PulseError as failed:
            yield GateResult(name, "failed", str(failed), time.monotonic() - began)
            raise GateFailed(f"the gate {name!r} says no:\n{failed}") from failed
        yield GateResult(name, outcome, words, time.monotonic() - began)


def chosen_gates(only: Sequence[str], skip: Mapping[str, str]) -> Mapping[str, Gate]:
    """The gates that are meant. Raises UnknownName for a name that is none, and PulseError if none is left to pass."""
    for name in (*only, *skip):
        if name not in GATES:
            raise UnknownName("gate", name, GATES)
    if both := [name for name in only if name in skip]:
        raise PulseError(
            f"the gate {both[0]!r} can't be both asked for and skipped; leave out --gate or --skip"
        )
    if not GATES.keys() - skip.keys():
        raise PulseError("no gate would be left to pass; skip at most four of: " + ", ".join(GATES))
    return {name: gate for name, gate in GATES.items() if not only or name in only}
