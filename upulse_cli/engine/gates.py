"""What a commit must pass before it is promoted. Each gate looks at its export, and changes nothing."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from pulse_adapters.config.home import Home
from pulse_core.model.errors import PulseError, UnknownName
from pulse_core.ports import Loaded, Revision

PATIENCE = 120.0
"""Seconds that a gate's program may take."""
SHOWN = 40


class GateFailed(PulseError):
    """A gate said no; nothing was changed."""


class Skipped(Exception):
    """Raised by a gate that cannot look; the message says why, and it is recorded with the promote."""


class Passed(NamedTuple):
    """One gate's word. outcome: passed or skipped; took: seconds."""

    name: str
    outcome: str
    words: str
    took: float

    def told(self) -> str:
        """As it is recorded."""
        return f"{self.name} {self.outcome}" + (f": {self.words}" if self.words else "")


@dataclass(frozen=True)
class Candidate:
    """What is to be promoted: the revision, the commit that it would replace, and the home."""

    home: Home
    revision: Revision
    previous: str
    load: Callable[[Revision], Loaded]
    replay: Callable[["Candidate"], str]

    @property
    def path(self) -> Path:
        """Where it is laid out."""
        return Path(self.revision.path)


def compiles(candidate: Candidate) -> str:
    """Every file is Python."""
    files = sorted(candidate.path.rglob("*.py"))
    for file in files:
        try:
            compile(file.read_bytes(), file.name, "exec", dont_inherit=True)
        except (SyntaxError, ValueError) as error:
            line = getattr(error, "lineno", None) or 1
            raise GateFailed(f"{file.relative_to(candidate.path)}:{line}: {error.args[0]}") from error
    return f"{len(files)} files"


def types(candidate: Candidate) -> str:
    """mypy finds nothing."""
    demand("mypy")
    cache = candidate.home.path / "cache" / "mypy"
    said = run(candidate, "mypy", "--cache-dir", str(cache), "--no-error-summary", ".")
    return said.splitlines()[-1] if said else ""


def loads(candidate: Candidate) -> str:
    """A rule host takes it."""
    loaded = candidate.load(candidate.revision)
    return f"{len(loaded.rules)} rules" + (
        f", {len(loaded.projections)} projections" if loaded.projections else ""
    )


def tests(candidate: Candidate) -> str:
    """Its own tests pass."""
    demand("pytest")
    if not any(candidate.path.glob("tests/**/test_*.py")):
        raise Skipped("it has no tests; upulse new makes one with each rule")
    said = run(candidate, "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", ".", "tests")
    return said.splitlines()[-1]


def replay(candidate: Candidate) -> str:
    """What has been recorded is folded through the old rules and the new ones."""
    return candidate.replay(candidate)


Gate = Callable[[Candidate], str]
GATES: Mapping[str, Gate] = {
    "compiles": compiles, "types": types, "loads": loads, "tests": tests, "replay": replay
}  # fmt: skip


def passing(candidate: Candidate, only: Sequence[str], skip: Mapping[str, str]) -> Iterator[Passed]:
    """Each gate's word as it is passed; raises GateFailed at the first that is not. skip: why, by name."""
    for name, gate in chosen(only, skip).items():
        began = time.monotonic()
        if name in skip:
            yield Passed(name, "skipped", skip[name], 0.0)
            continue
        try:
            words, outcome = gate(candidate), "passed"
        except Skipped as why:
            words, outcome = str(why), "skipped"
        except GateFailed as failed:
            raise GateFailed(f"the gate {name!r} says no:\n{failed}") from failed
        yield Passed(name, outcome, words, time.monotonic() - began)


def chosen(only: Sequence[str], skip: Mapping[str, str]) -> Mapping[str, Gate]:
    """The gates that are meant; raises UnknownName for a name that is none."""
    for name in (*only, *skip):
        if name not in GATES:
            raise UnknownName("gate", name, GATES)
    return {name: gate for name, gate in GATES.items() if not only or name in only}


def demand(program: str) -> None:
    """Skip, saying how it is installed, where a program is missing."""
    if find_spec(program) is None:
        raise Skipped(f"{program} is not installed: pip install {program}")


def run(candidate: Candidate, program: str, *words: str) -> str:
    """What a program says of the files; raises GateFailed with the end of it if it fails, or takes too long."""
    argv = (sys.executable, "-P", "-m", program, *words)
    child = subprocess.Popen(
        argv, cwd=candidate.path, env=scrubbed(candidate), text=True, errors="replace", start_new_session=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    try:
        said, _ = child.communicate(timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        raise GateFailed(f"{program} did not end within {PATIENCE:g} s") from None
    finally:
        if child.poll() is None:
            os.killpg(child.pid, signal.SIGKILL)
            child.wait()
    if child.returncode:
        raise GateFailed("\n".join(said.strip().splitlines()[-SHOWN:]) or f"exit {child.returncode}")
    return said.strip()


def scrubbed(candidate: Candidate) -> Mapping[str, str]:
    """An environment without secrets, in which the files find each other and nothing is written beside them."""
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "TMPDIR") if name in os.environ}
    return {
        **kept,
        "HOME": str(candidate.home.path / "cache"),
        "PYTHONPATH": str(candidate.path),
        "PYTHONHASHSEED": "0",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
    }
