"""Mutation testing of the survival rules: each small change of them must fail a test, or be judged harmless.

Of the known tools, mutmut leaves constants and tables alone and numbers its mutants, so that no judgement outlives
an edit, and cosmic-ray writes into the checkout and starts pytest anew for each; here nothing is written, and each
mutant lives in a forked child that has everything but the rules in memory already.
"""

import argparse
import importlib.util
import os
import pickle
import resource
import signal
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import CodeType, FrameType, ModuleType
from typing import Any, NamedTuple

import pytest
from hypothesis import settings

from pulse_core import projections as _projections  # noqa: F401 - in memory before the first fork
from tests.campaign.changes import Change, changes

ROOT = Path(__file__).resolve().parents[2]
RULES = ROOT / "pulse_core" / "rules" / "survival"
PACKAGE = "pulse_core.rules.survival"
TESTS = ("tests/unit/rules",)
JUDGED = Path(__file__).with_name("judged_mutants.txt")
PATIENCE = 30
"""Seconds after which a mutant counts as timed out; all the tests together need three."""
MEMORY = 4 << 30
KILLED, SURVIVED, TIMED_OUT = "killed", "survived", "timed out"


class Reach(NamedTuple):
    """What the tests reach while the rules are as they are: the lines of each test, and its seconds."""

    lines: dict[str, set[tuple[str, int]]]
    took: dict[str, float]

    def tests(self, change: Change) -> list[str]:
        """Those that may notice it, the fastest first."""
        module = change.where.partition(".")[0]
        wanted = {(module, line) for line in change.lines}
        found = [test for test, lines in self.lines.items() if not wanted or wanted & lines]
        return sorted(found, key=lambda test: self.took[test])


class Recorder:
    """A pytest plugin that notes which lines of the rules each test runs."""

    def __init__(self) -> None:
        self.reach = Reach(defaultdict(set), {})

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Iterator[None]:
        lines = self.reach.lines[item.nodeid]

        def step(frame: FrameType, event: str, arg: object) -> Any:
            lines.add((Path(frame.f_code.co_filename).stem, frame.f_lineno))
            return step

        def enter(frame: FrameType, event: str, arg: object) -> Any:
            return step(frame, event, arg) if frame.f_code.co_filename.startswith(str(RULES)) else None

        began = time.perf_counter()
        sys.settrace(enter)
        try:
            return (yield)
        finally:
            sys.settrace(None)
            self.reach.took[item.nodeid] = time.perf_counter() - began


class Choice:
    """A pytest plugin that runs these tests only, in this order."""

    def __init__(self, tests: Sequence[str]) -> None:
        self.order = {test: n for n, test in enumerate(tests)}

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = sorted(
            (item for item in items if item.nodeid in self.order), key=lambda item: self.order[item.nodeid]
        )


class Mutated:
    """A finder that brings a module of the rules with a change in it."""

    def __init__(self, name: str, code: CodeType) -> None:
        self.name, self.code = name, code

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        if name != self.name:
            return None
        file = Path(self.code.co_filename)
        inside = [str(file.parent)] if file.stem == "__init__" else None
        return importlib.util.spec_from_file_location(
            name,
            file,
            loader=self,  # type: ignore[arg-type]  # create_module and exec_module are all that is asked for
            submodule_search_locations=inside,
        )

    def create_module(self, spec: ModuleSpec) -> None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        exec(self.code, module.__dict__)


def main(argv: Sequence[str] | None = None) -> int:
    """Try every change of the survival rules; the exit code says whether each was noticed or is judged."""
    parser = argparse.ArgumentParser(prog="tests.campaign.mutants", description=main.__doc__)
    parser.add_argument("modules", nargs="*", metavar="MODULE", help="only these of the rules, as `silence`")
    parser.add_argument("--stride", type=int, default=1, help="try every so many-th change only")
    parser.add_argument("--tests", nargs="+", default=TESTS, help="what is run against each")
    parser.add_argument("--judged", type=Path, default=JUDGED, help="the survivors that may be, and why")
    options = parser.parse_args(argv)
    assert not [name for name in sys.modules if name.startswith(PACKAGE)], "the rules are in memory already"
    with tempfile.TemporaryDirectory(prefix="pulse-mutants-") as place:
        prepare(place)
        reach = recorded(options.tests, Path(place) / "reach")
        outcomes = [(change, attempt(change, reach)) for change in chosen(options.modules)[:: options.stride]]
    return report(outcomes, judgements(options.judged), whole=options.stride == 1)


def prepare(place: str) -> None:
    """See to it that nothing is written into the checkout, and that chance and a busy machine decide nothing."""
    os.chdir(ROOT)
    sys.pycache_prefix = os.environ["HYPOTHESIS_STORAGE_DIRECTORY"] = place
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    settings.register_profile("mutants", derandomize=True, database=None, deadline=None)
    settings.load_profile("mutants")


def chosen(modules: Sequence[str]) -> list[Change]:
    """The changes of these modules, or of all."""
    files = [path for path in sorted(RULES.glob("*.py")) if not modules or path.stem in modules]
    return [change for path in files for change in changes(path.stem, path.read_text(), str(path))]


def recorded(tests: Sequence[str], place: Path) -> Reach:
    """Run the tests against the rules as they are, which they must pass."""

    def run() -> int:
        recorder = Recorder()
        code = pytest.main(arguments(tests), [recorder])
        place.write_bytes(pickle.dumps(Reach(dict(recorder.reach.lines), recorder.reach.took)))
        return int(code)

    if how := in_child(run, quiet=False):
        raise SystemExit(f"the tests do not even pass without a change (exit code {how})")
    found: Reach = pickle.loads(place.read_bytes())
    return found


def arguments(paths: Sequence[str]) -> list[str]:
    return [
        "-q",
        "-x",
        "-p",
        "no:cacheprovider",
        "-c",
        os.devnull,
        f"--rootdir={ROOT}",
        "-W",
        "error",
        *paths,
    ]


def attempt(change: Change, reach: Reach) -> str:
    """What becomes of a change."""
    tests = reach.tests(change)
    if not tests:
        return SURVIVED
    module = change.where.partition(".")[0]
    name = PACKAGE if module == "__init__" else f"{PACKAGE}.{module}"

    def run() -> int:
        sys.meta_path.insert(0, Mutated(name, change.code))  # type: ignore[arg-type]  # a finder all the same
        paths = sorted({test.partition("::")[0] for test in tests})
        return int(pytest.main(arguments(paths), [Choice(tests)]))

    how = in_child(run)
    return TIMED_OUT if how < 0 else KILLED if how else SURVIVED


def in_child(work: Callable[[], int], *, quiet: bool = True) -> int:
    """Do it in a forked child with bounded time and memory; its exit code, or less than 0 if time was up."""
    pid = os.fork()
    if pid == 0:
        try:
            signal.alarm(PATIENCE)
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
            if quiet:
                nowhere = os.open(os.devnull, os.O_WRONLY)
                os.dup2(nowhere, 1), os.dup2(nowhere, 2)
            code = work()
            sys.stdout.flush()
            os._exit(code)
        except BaseException:  # noqa: BLE001 - a rule that cannot even be imported is noticed
            os._exit(70)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def judgements(path: Path) -> dict[str, str]:
    """The survivors that were looked at, and why each may be: a line of a change, then indented lines about it."""
    found: dict[str, str] = {}
    name = ""
    for line in path.read_text().splitlines():
        if line.startswith("#") or not line.strip():
            continue
        if line.startswith(" "):
            found[name] = f"{found[name]} {line.strip()}".strip()
        else:
            name = line.strip()
            found[name] = ""
    if bare := [name for name, why in found.items() if not why]:
        raise SystemExit(f"{path}: no reason is given for {bare[0]!r}")
    return found


def report(outcomes: Sequence[tuple[Change, str]], judged: dict[str, str], *, whole: bool) -> int:
    """Print the table and the survivors; 1 if one of them is not judged."""
    table: dict[str, Counter[str]] = defaultdict(Counter)
    for change, outcome in outcomes:
        known = outcome != KILLED and change.name in judged
        table[change.where.partition(".")[0]].update([outcome, *(["judged"] if known else [])])
    columns = (KILLED, SURVIVED, TIMED_OUT, "judged")
    print(f"{'module':<20}{'mutants':>10}" + "".join(f"{column:>12}" for column in columns))
    for module, counts in [*table.items(), ("all", sum(table.values(), Counter[str]()))]:
        total = counts.total() - counts["judged"]
        print(f"{module:<20}{total:>10}" + "".join(f"{counts[column]:>12}" for column in columns))
    left = [(change, outcome) for change, outcome in outcomes if outcome != KILLED]
    for change, outcome in left:
        why = judged.get(change.name)
        module = change.where.partition(".")[0]
        print(f"{outcome}: {(RULES / module).relative_to(ROOT)}.py:{change.line}: {change.name}")
        print(f"    {f'judged: {why}' if why else 'NOT JUDGED'}")
    names = {change.name for change, _ in left}
    for name in judged if whole else ():
        if name.partition(":")[0].partition(".")[0] in table and name not in names:
            print(f"judged, but killed or gone by now: {name}")
    unjudged = sum(change.name not in judged for change, _ in left)
    print(f"mutants: {len(outcomes)} changes, {len(left)} lived, {unjudged} of them not judged", flush=True)
    return 1 if unjudged else 0


if __name__ == "__main__":
    sys.exit(main())
