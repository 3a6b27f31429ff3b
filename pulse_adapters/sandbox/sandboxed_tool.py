"""The program that runs a gate's tool on an author's files: it confines itself, then runs the tool.

It forks nothing: mypy and pytest need no other process, and one that none can be begun in has nothing to leave behind.
"""

import json
import os
import resource
import shutil
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from runpy import run_module
from typing import Any

from pulse_adapters.sandbox.confinement import MIB, ConfinementTerms, confine_process
from pulse_adapters.sandbox.priorities import lower_priority
from pulse_adapters.workers.child_side import join_group
from pulse_adapters.workers.source_locations import Places, describe_error, with_place

FILES, FILE_BYTES = 512, 256 * MIB
CPU_S = 600
"""Of all threads together, should nobody be left to end it."""
_TOLD, _WORDS = 16_384, 1_000
"""Bytes of a line, which holds two texts of so many characters, whatever those are."""
_MACHINE = ("/proc/cpuinfo", "/proc/meminfo", "/proc/stat", "/sys/devices/system/cpu")
"""What tells them how much they may do at once."""

Order = Mapping[str, Any]


class OutcomeReporter:
    """A plugin of pytest that knows how the tests ended, whatever is printed.

    first: the first that failed, and why; broken: what ended pytest itself.
    """

    def __init__(self, places: Places) -> None:
        self.ends, self.first, self.broken = Counter[str](), "", ""
        self._places = places

    def pytest_runtest_makereport(self) -> None:
        """Of an author's mistake no frame of Pulse's own is told: pytest leaves out those whose module says so."""
        for name, module in [*sys.modules.items()]:
            if name.startswith(("pulse_core", "pulse_adapters")):
                vars(module)["__tracebackhide__"] = True

    def pytest_runtest_logreport(self, report: Any) -> None:
        """A test's part has ended; what is set up and torn down well is not counted."""
        if report.when != "call" and report.passed:
            return
        if hasattr(report, "wasxfail"):
            self.ends["xfailed" if report.skipped else "xpassed"] += 1
        else:
            self.ends[report.outcome] += 1
            self.pytest_collectreport(report)

    def pytest_collectreport(self, report: Any) -> None:
        """A test, or a file of tests, has ended or was read."""
        if report.failed and not self.first:
            said = (line[1:] for line in report.longreprtext.splitlines() if line.startswith("E "))
            self.first = " ".join(f"{report.nodeid}: {next(said, report.outcome)}".split())[:_WORDS]

    def pytest_deselected(self, items: Sequence[Any]) -> None:
        """Tests that are not run."""
        self.ends["deselected"] += len(items)

    def pytest_internalerror(self, excinfo: Any) -> None:
        """A hook has failed: one of the author's `conftest.py`, most likely."""
        self.broke(excinfo.value)

    def broke(self, error: BaseException) -> None:
        """Keep what ended pytest, and where."""
        self.broken = with_place(describe_error(error), self._places.of_error(error))[:_WORDS]

    def told(self) -> Mapping[str, Any]:
        """For the parent."""
        return {"tests": self.ends, "first": self.first, "broken": self.broken}


def main(order: Order) -> None:
    """Confine this process, report which parts hold, and run the tool."""
    os.chdir(order["root"])
    join_group(order["group"])
    with suppress(OSError), open("/proc/self/oom_score_adj", "w") as first:
        first.write("1000")  # rather than anything that is guarded
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_S, CPU_S))
    lower_priority()
    terms = ConfinementTerms(
        FILES, FILE_BYTES, True, order["scratch_limits"], order["writable"], order["listable"]
    )
    known = [order["known"]] if order["known"] else []
    readable = [order["root"], *order["readable"], *known, *_MACHINE]
    held = confine_process(readable, order["scratch"], order["memory"] * MIB, order["user"], terms)
    if os.getppid() != order["parent"]:  # it died before the kernel was told to end us with it
        os._exit(1)
    send_line(order["tell"], {"cage": held})
    TOOLS[order["tool"]](order)


def mypy(order: Order) -> None:
    """Check the types. What lies here is not imported, and what mypy keeps goes with this process."""
    sys.argv = ["mypy", *order["words"]]
    if known := order["known"]:
        own = os.path.join(order["scratch"], "mypy")
        for folder, _, files in os.walk(known):
            os.mkdir(there := os.path.normpath(os.path.join(own, os.path.relpath(folder, known))))
            for file in files:  # their modes can't be copied here
                shutil.copyfile(os.path.join(folder, file), os.path.join(there, file))
        sys.argv += ["--cache-dir", own]
    run_module("mypy", run_name="__main__", alter_sys=True)


def tests(order: Order) -> None:
    """Run the tests, and tell how they ended. What they leave running, or to be done at the exit, is not waited for."""
    import pytest

    sys.path.insert(0, order["root"])
    reporter, code = OutcomeReporter(Places({order["root"]: ""})), 1
    try:
        code = int(pytest.main([*order["words"]], plugins=[reporter]))
    except BaseException as error:  # noqa: BLE001 - somebody else's hook, which may raise what it likes
        reporter.broke(error)
    send_line(order["tell"], reporter.told())
    sys.stdout.flush()
    os._exit(code)


TOOLS = {"mypy": mypy, "pytest": tests}


def send_line(pipe: int, what: Mapping[str, Any]) -> None:
    """Send a line of JSON to the parent."""
    os.write(pipe, json.dumps(what, ensure_ascii=False).encode("utf-8", "replace")[: _TOLD - 1] + b"\n")


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
