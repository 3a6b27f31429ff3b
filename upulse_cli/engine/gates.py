"""What a commit must pass before it is promoted. Each gate looks at its export, and changes nothing."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from pulse_adapters.config.home import Home
from pulse_core.model.errors import PulseError, UnknownName
from pulse_core.model.text import count
from pulse_core.ports import Loaded, Revision
from pulse_core.ports.code_checks import CodeChecks, GateFailed, GateSkipped


class Passed(NamedTuple):
    """One gate's word, whose first line says it all. outcome: passed or skipped; took: seconds."""

    name: str
    outcome: str
    words: str
    took: float

    def told(self) -> str:
        """As it is recorded."""
        first, *_ = self.words.splitlines() or [""]
        return f"{self.name} {self.outcome}" + (f": {first}" if first else "")


@dataclass(frozen=True)
class Candidate:
    """What is to be promoted: the revision, the commit that it would replace, and the home.

    checks: the tools that look at its files.
    """

    home: Home
    revision: Revision
    previous: str
    checks: CodeChecks
    load: Callable[[Revision], Loaded]
    replay: Callable[["Candidate"], str]


def compiles(candidate: Candidate) -> str:
    """Every file is Python."""
    return candidate.checks.compiles(candidate.revision.path)


def types(candidate: Candidate) -> str:
    """The types are sound."""
    return candidate.checks.types(candidate.revision.path)


def loads(candidate: Candidate) -> str:
    """A rule host takes it, and a hands host what of it senses and acts."""
    loaded = candidate.load(candidate.revision)
    projections = f", {count(len(loaded.projections), 'projection')}" if loaded.projections else ""
    return count(len(loaded.rules), "rule") + projections


def tests(candidate: Candidate) -> str:
    """Its own tests pass."""
    return candidate.checks.tests(candidate.revision.path)


def replay(candidate: Candidate) -> str:
    """What has been recorded is folded through the old rules and the new ones."""
    return candidate.replay(candidate)


Gate = Callable[[Candidate], str]
GATES: Mapping[str, Gate] = {
    "compiles": compiles, "types": types, "loads": loads, "tests": tests, "replay": replay
}  # fmt: skip


def passing(candidate: Candidate, only: Sequence[str], skip: Mapping[str, str]) -> Iterator[Passed]:
    """Each gate's word as it is passed, and that of the first that is not; then GateFailed. skip: why, by name."""
    for name, gate in chosen(only, skip).items():
        began = time.monotonic()
        if name in skip:
            yield Passed(name, "skipped", skip[name], 0.0)
            continue
        try:
            words, outcome = gate(candidate), "passed"
        except GateSkipped as why:
            words, outcome = str(why), "skipped"
        except PulseError as failed:
            yield Passed(name, "failed", str(failed), time.monotonic() - began)
            raise GateFailed(f"the gate {name!r} says no:\n{failed}") from failed
        yield Passed(name, outcome, words, time.monotonic() - began)


def chosen(only: Sequence[str], skip: Mapping[str, str]) -> Mapping[str, Gate]:
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
