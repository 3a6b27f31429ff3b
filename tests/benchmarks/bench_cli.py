"""How long a person waits for the command line."""

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from pulse_adapters.config.home import Home
from tests.benchmarks.harness import ROOT, compiled, daemon, directory
from tests.benchmarks.table import Row, percentile, times

CALLS = 10


def took(argv: Sequence[str]) -> float:
    """Milliseconds of one call."""
    began = time.perf_counter()
    subprocess.run(argv, cwd=ROOT, env=dict(os.environ), stdout=subprocess.DEVNULL, check=True)
    return (time.perf_counter() - began) * 1000


def upulse() -> list[str]:
    """The installed command, or the module where it is not installed."""
    script = Path(sys.executable).with_name("upulse")
    return [str(script)] if script.exists() else [sys.executable, "-m", "upulse_cli"]


def run(calls: int = CALLS) -> list[Row]:
    """The median of some calls on a home with its engine, as `init` makes it, and of a bare interpreter in turn."""
    compiled()
    spent: dict[str, list[float]] = {"--help": [], "status": [], "explain": [], "": []}
    with directory() as place:
        home = Home(place / "home")
        subprocess.run(
            [*upulse(), "init", "--home", str(home.path)], cwd=ROOT, capture_output=True, check=True
        )
        with daemon(home):
            time.sleep(5)  # the check of the log in the background shall be over
            argvs = {
                "--help": [*upulse(), "--help"],
                "status": [*upulse(), "status", "--home", str(home.path)],
                "explain": [*upulse(), "explain", "--home", str(home.path)],
                "": [sys.executable, "-c", "pass"],
            }
            for _ in range(calls + 1):
                for name, argv in argvs.items():
                    spent[name].append(took(argv))
    middle = {name: percentile(taken[1:], 50) for name, taken in spent.items()}
    raw = f"{middle['']:.0f} ms (python -c pass)"
    return [
        Row(f"upulse {name}", f"<= {goal} ms", f"{middle[name]:.0f} ms", raw, times(middle[name], middle[""]))
        for name, goal in (("--help", 120), ("status", 200), ("explain", 400))
    ]


if __name__ == "__main__":
    from tests.benchmarks.table import markdown

    print(markdown(run()))
