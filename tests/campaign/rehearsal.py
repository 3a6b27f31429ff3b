"""The survival rules' tests, run against a changed rule in a forked child that has all else in memory already."""

import gc
import os
import pickle
import resource
import signal
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_file_location
from pathlib import Path
from types import CodeType, FrameType, ModuleType
from typing import Any, NamedTuple

import pytest
from hypothesis import settings

from pulse_core import rules  # noqa: F401 - in memory before the first fork, but no survival rule
from pulse_core.ports import engine, host  # noqa: F401 - as above
from tests.campaign.changes import Change

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = "pulse_core.rules.survival"
MODULES = {
    **{
        file.stem: f"{PACKAGE}.{file.stem}"
        for file in sorted((ROOT / PACKAGE.replace(".", "/")).glob("*.py"))
    },
    "__init__": PACKAGE,
    "silence": "pulse_core.silences.rule",
    "llm_watchdog": "pulse_core.llm.rule",
    "endpoint": "pulse_core.llm.endpoint",
    "check_watchdog": "pulse_core.checks.rule",
    "conclusions": "pulse_core.checks.conclusions",
}
"""The modules that are changed, by the name under which a change of them is judged: also those of capabilities."""
PATIENCE = 60
"""Seconds after which a mutant counts as timed out; all the tests together need three."""
MEMORY = 4 << 30
UNNEEDED = ("cacheprovider", "faulthandler", "junitxml", "pastebin", "unraisableexception")
"""Plugins of pytest itself that write, or cost each mutant more than its tests do."""
OUTCOMES = KILLED, SURVIVED, TIMED_OUT = "killed", "survived", "timed out"


def file_of(module: str) -> Path:
    """The file of one of these modules."""
    name = MODULES[module].replace(".", "/")
    return ROOT / (f"{name}/__init__.py" if module == "__init__" else f"{name}.py")


NAMES = {str(file_of(module)): module for module in MODULES}


class Reach(NamedTuple):
    """What the tests reach while the rules are as they are: the lines of each test, and its seconds."""

    lines: dict[str, set[tuple[str, int]]]
    took: dict[str, float]

    def tests(self, change: Change) -> list[str]:
        """Those that may notice it, the fastest first."""
        wanted = {(change.module, line) for line in change.lines}
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
            lines.add((NAMES[frame.f_code.co_filename], frame.f_lineno))
            return step

        def enter(frame: FrameType, event: str, arg: object) -> Any:
            return step(frame, event, arg) if frame.f_code.co_filename in NAMES else None

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


class Mutated(MetaPathFinder, Loader):
    """Brings a module of the rules with a change in it."""

    def __init__(self, name: str, code: CodeType) -> None:
        self.name, self.code = name, code

    def find_spec(self, name: str, path: object, target: object = None) -> ModuleSpec | None:
        if name != self.name:
            return None
        file = Path(self.code.co_filename)
        inside = [str(file.parent)] if file.stem == "__init__" else None
        return spec_from_file_location(name, file, loader=self, submodule_search_locations=inside)

    def create_module(self, spec: ModuleSpec) -> None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        exec(self.code, module.__dict__)


def prepare(place: str) -> None:
    """See to it that nothing is written into the checkout, and that chance and a busy machine decide nothing."""
    os.chdir(ROOT)
    sys.pycache_prefix = os.environ["HYPOTHESIS_STORAGE_DIRECTORY"] = place
    sys.dont_write_bytecode = False
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    settings.register_profile("mutants", derandomize=True, database=None, deadline=None)
    settings.load_profile("mutants")


def recorded(tests: Sequence[str], place: Path) -> Reach:
    """Run the tests against the rules as they are, which they must pass."""

    def run() -> int:
        recorder = Recorder()
        code = pytest.main(arguments(tests), [recorder])
        place.write_bytes(pickle.dumps(Reach(dict(recorder.reach.lines), recorder.reach.took)))
        return int(code)

    if how := in_child(run, patience=20 * PATIENCE, quiet=False):
        raise SystemExit(f"the tests do not even pass without a change (exit code {how})")
    found: Reach = pickle.loads(place.read_bytes())
    return found


def attempt(change: Change, reach: Reach) -> str:
    """What becomes of a change."""
    tests = reach.tests(change)
    if not tests:
        return SURVIVED
    name = MODULES[change.module]

    def run() -> int:
        sys.meta_path.insert(0, Mutated(name, change.code))
        paths = sorted({test.partition("::")[0] for test in tests})
        return int(pytest.main(arguments(paths), [Choice(tests)]))

    how = in_child(run)
    return TIMED_OUT if how < 0 else KILLED if how else SURVIVED


def arguments(paths: Sequence[str]) -> list[str]:
    unneeded = (f"no:{plugin}" for plugin in UNNEEDED)
    without = [word for plugin in unneeded for word in ("-p", plugin)]
    return ["-q", "-x", *without, "-c", os.devnull, f"--rootdir={ROOT}", "-W", "error", *paths]


def in_child(work: Callable[[], int], *, patience: int = PATIENCE, quiet: bool = True) -> int:
    """Do it in a forked child with bounded time and memory; its exit code, or less than 0 if time was up."""
    gc.freeze()
    pid = os.fork()
    if pid == 0:
        try:
            signal.alarm(patience)
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
