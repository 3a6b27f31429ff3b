"""What a commit must pass before it is promoted. Each gate looks at its export, and changes nothing."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from pulse_adapters.config.home import Home
from pulse_adapters.engine_user.quarters import Quarters
from pulse_adapters.git.template import shipped
from pulse_core.model.errors import PulseError, UnknownName
from pulse_core.ports import Loaded, Revision
from upulse_cli.engine.caging import Broke, Job, Said, run
from upulse_cli.engine.lax import lax
from upulse_cli.speech import count

SHOWN = 40
NO_TESTS = 5
"""How pytest exits that has run none."""
ENDS = ("passed", "failed", "skipped", "xfailed", "xpassed", "deselected")


class GateFailed(PulseError):
    """A gate said no; nothing was changed."""


class Skipped(Exception):
    """Raised by a gate that cannot look; the message says why, and it is recorded with the promote."""


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

    quarters: where the engine's user lives, as whom the tools of gates then run.
    """

    home: Home
    revision: Revision
    previous: str
    load: Callable[[Revision], Loaded]
    replay: Callable[["Candidate"], str]
    quarters: Quarters | None = None

    @property
    def path(self) -> Path:
        """Where it is laid out."""
        return Path(self.revision.path)

    @cached_property
    def work(self) -> Path:
        """Where a tool may keep things that no author's code can change."""
        if self.quarters:
            return self.quarters.work()
        path = self.home.path / "cache"
        path.mkdir(mode=0o700, exist_ok=True)
        return path

    @property
    def user(self) -> tuple[int, int] | None:
        """As whom the tools run, if not as we do."""
        return self.quarters.account.ids if self.quarters else None


def compiles(candidate: Candidate) -> str:
    """Every file is Python."""
    files = [file for file in sorted(candidate.path.rglob("*.py")) if file.is_file()]
    for file in files:
        try:
            compile(file.read_bytes(), file.name, "exec", dont_inherit=True)
        except (SyntaxError, ValueError, MemoryError, RecursionError) as error:
            line, words = getattr(error, "lineno", None) or 1, str(next(iter(error.args), "it is too deep"))
            raise GateFailed(f"{file.relative_to(candidate.path)}:{line}: {words}") from error
    return count(len(files), "file")


def types(candidate: Candidate) -> str:
    """mypy finds nothing, as strict as Pulse ships it, whatever the files say of that."""
    demand("mypy")
    if deciding := sorted(lax(candidate.path)):
        raise GateFailed("\n".join(deciding))
    config, cache = str(shipped() / "pyproject.toml"), str(candidate.work / "mypy")
    words = ("--config-file", config, "--cache-dir", cache, "--no-error-summary", ".")
    said = seen(candidate, Job("mypy", words, [config], [str(candidate.work)], candidate.user))
    last = said.text.splitlines()[-1:]
    return told(said, *last)


def loads(candidate: Candidate) -> str:
    """A rule host takes it, and a hands host what of it senses and acts."""
    loaded = candidate.load(candidate.revision)
    projections = f", {count(len(loaded.projections), 'projection')}" if loaded.projections else ""
    return count(len(loaded.rules), "rule") + projections


def tests(candidate: Candidate) -> str:
    """Its own tests pass."""
    demand("pytest")
    if not any(candidate.path.glob("tests/**/test_*.py")):
        raise Skipped("it has no tests; upulse new makes one with each rule")
    job = ("-q", "-p", "no:cacheprovider", "--rootdir", ".", "tests")
    said = seen(candidate, Job("pytest", job, user=candidate.user), NO_TESTS)
    ends = said.told.get("tests")
    if not isinstance(ends, dict):
        raise GateFailed(f"pytest ended before it could tell how the tests did\n{shown(said)}".strip())
    words = ", ".join(f"{number} {end}" for end in ENDS if isinstance(number := ends.get(end), int))
    if not ends.get("passed") and not ends.get("xfailed"):
        raise GateFailed(
            f"no test has passed: {words or 'none was run'}; see tests/, conftest.py and addopts"
        )
    return told(said, words)


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
        except Skipped as why:
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


def demand(program: str) -> None:
    """Skip, saying how it is installed, where a program is missing."""
    if find_spec(program) is None:
        raise Skipped(f"{program} is not installed: pip install {program}")


def seen(candidate: Candidate, job: Job, *fine: int) -> Said:
    """What a tool says of the files. Raises GateFailed, with the end of it, if it fails or does not end well.

    fine: exit codes that are no failure besides 0.
    """
    try:
        said = run(candidate.path, job)
    except Broke as broke:
        raise GateFailed(str(broke)) from broke
    if said.exit not in (0, *fine):
        raise GateFailed(shown(said) or f"{job.tool} ended with {said.exit}")
    return said


def shown(said: Said) -> str:
    """The end of what was printed."""
    return "\n".join(said.text.splitlines()[-SHOWN:])


def told(said: Said, *words: str) -> str:
    """A gate's words, with what was not kept from the author's code."""
    if said.missing:
        words = (*words, f"isolation: partial (no {', '.join(said.missing)})")
    return "; ".join(words)
