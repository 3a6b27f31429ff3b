"""How long a person waits, at three in the morning, for what happened and why, in a log of a million events."""

import sys
import time
from collections.abc import Mapping
from typing import Any

from pulse_adapters.config.home import Home
from pulse_adapters.ipc.client import Client
from tests.benchmarks.bench_cli import took, upulse
from tests.benchmarks.filled import MILLION, filled_home
from tests.benchmarks.harness import compiled, daemon
from tests.benchmarks.table import Row, percentile, times

CALLS = 10
PATIENCE = 300.0
TOOLS = {
    "explain": ("explain",),
    "why": ("why",),
    "why restart-process:worker-3": ("why", "restart-process:worker-3"),
    "incidents --since 24h": ("incidents", "--since", "24h"),
    "incidents --since 7d": ("incidents", "--since", "7d"),
}


def settled(home: Home, patience: float = PATIENCE) -> bool:
    """Wait until the daemon has read the whole log in the background, which is not to share the processor with us.

    False if that took too long: it runs at the lowest priority, so the neighbours are busy, and they are what counts.
    """
    until = time.monotonic() + patience
    with Client(home.socket, timeout=30.0) as client:
        while not verified_by(client.ask("status")):
            if time.monotonic() > until:
                return False
            time.sleep(0.5)
    return True


def verified_by(standing: Mapping[str, Any]) -> bool:
    """Whether this very daemon has read the log; an earlier one's word stands until then."""
    return bool((standing["log"]["verified"] or "") > standing["daemon"]["since"])


def measured(home: Home, calls: int) -> dict[str, list[float]]:
    """Milliseconds of every call; the first ones, which find nothing in memory, are left out."""
    argvs = {name: [*upulse(), *words, "--home", str(home.path)] for name, words in TOOLS.items()}
    argvs[""] = [sys.executable, "-c", "pass"]
    spent: dict[str, list[float]] = {name: [] for name in argvs}
    for _ in range(calls + 1):
        for name, argv in argvs.items():
            spent[name].append(took(argv))
    return {name: taken[1:] for name, taken in spent.items()}


def run(rows: int = MILLION, calls: int = CALLS) -> list[Row]:
    """The median of some calls beside a running daemon, and of a bare interpreter in turn."""
    compiled()
    home = filled_home(rows)
    with daemon(home):
        pass  # it leaves a checkpoint, as one that has lived for a minute
    with daemon(home):
        beside = "" if settled(home) else ", beside busy neighbours"
        spent = measured(home, calls)
    middle = {name: percentile(taken, 50) for name, taken in spent.items()}
    raw = f"{middle['']:.0f} ms (python -c pass)"
    return [
        Row(
            f"upulse {name} with {rows:,} events",
            "<= 500 ms",
            f"{middle[name]:.0f} ms (worst {max(spent[name]):.0f}){beside}",
            raw,
            times(middle[name], middle[""]),
        )
        for name in TOOLS
    ]


if __name__ == "__main__":
    from tests.benchmarks.table import markdown

    print(markdown(run()))
