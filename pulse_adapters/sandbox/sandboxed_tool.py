"""The program that runs a gate's tool on an author's files: it confines itself, then runs the tool.

It forks nothing: mypy and pytest need no other process, and one that none can be begun in has nothing to leave behind.
"""

import json
import os
import resource
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from runpy import run_module
from typing import Any

from pulse_adapters.sandbox.confinement import MIB, ConfinementTerms, confine_process
from pulse_adapters.sandbox.priorities import lower_priority
from pulse_adapters.workers.child_side import join_group

FILES, FILE_BYTES = 512, 256 * MIB
CPU_S = 600
"""Of all threads together, should nobody be left to end it."""
_TOLD = 8_192
_MACHINE = ("/proc/cpuinfo", "/proc/meminfo", "/proc/stat", "/sys/devices/system/cpu")
"""What tells them how much they may do at once."""

Order = Mapping[str, Any]


class OutcomeCounter:
    """A plugin of pytest that knows how the tests ended, whatever is printed."""

    def __init__(self) -> None:
        self.ends = Counter[str]()

    def pytest_runtest_logreport(self, report: Any) -> None:
        """A test's part has ended; what is set up and torn down well is not counted."""
        if report.when != "call" and report.passed:
            return
        if hasattr(report, "wasxfail"):
            self.ends["xfailed" if report.skipped else "xpassed"] += 1
        else:
            self.ends[report.outcome] += 1

    def pytest_deselected(self, items: Sequence[Any]) -> None:
        """Tests that are not run."""
        self.ends["deselected"] += len(items)


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
    readable = [order["root"], *order["readable"], *_MACHINE]
    held = confine_process(readable, order["scratch"], order["memory"] * MIB, order["user"], terms)
    if os.getppid() != order["parent"]:  # it died before the kernel was told to end us with it
        os._exit(1)
    send_line(order["tell"], {"cage": held})
    TOOLS[order["tool"]](order)


def mypy(order: Order) -> None:
    """Check the types. What lies here is not imported."""
    sys.argv = ["mypy", *order["words"]]
    run_module("mypy", run_name="__main__", alter_sys=True)


def tests(order: Order) -> None:
    """Run the tests, and tell how they ended. What they leave running, or to be done at the exit, is not waited for."""
    import pytest

    sys.path.insert(0, order["root"])
    counts = OutcomeCounter()
    code = pytest.main([*order["words"]], plugins=[counts])
    send_line(order["tell"], {"tests": counts.ends})
    sys.stdout.flush()
    os._exit(int(code))


TOOLS = {"mypy": mypy, "pytest": tests}


def send_line(pipe: int, what: Mapping[str, Any]) -> None:
    """Send a line of JSON to the parent."""
    os.write(pipe, json.dumps(what).encode()[: _TOLD - 1] + b"\n")


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
