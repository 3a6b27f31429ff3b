"""From the start of the process to READY, over a log of a million events."""

import os
import subprocess
import sys
import time
from contextlib import closing

from pulse_adapters.config.home import Home
from pulse_adapters.sqlite.connect import connect_readonly
from tests.benchmarks.filled import MILLION, filled_home
from tests.benchmarks.harness import ROOT, compiled, daemon
from tests.benchmarks.table import Row, percentile, times

STARTS = 5
COLUMNS = "seq, id, at, boot, mono, kind, subject, actor, host, cause, data"


def started(home: Home) -> float:
    """Seconds until READY; the daemon then stops as it should, with a checkpoint."""
    with daemon(home) as (_, seconds):
        return seconds


def imports() -> float:
    """Seconds that an interpreter takes to import the daemon's modules, and nothing else."""
    began = time.perf_counter()
    argv = [sys.executable, "-c", "import upulse_cli.serve"]
    subprocess.run(argv, cwd=ROOT, env=dict(os.environ), check=True)
    return time.perf_counter() - began


def select(home: Home) -> float:
    """Seconds of a bare SELECT over all rows."""
    began = time.perf_counter()
    with closing(connect_readonly(home.events)) as log:
        rows = log.execute(f"SELECT {COLUMNS} FROM event ORDER BY seq")
        while rows.fetchmany(2_000):
            pass
    return time.perf_counter() - began


def run(rows: int = MILLION) -> list[Row]:
    """The median of some starts with a checkpoint and without one, the raw limits in turn."""
    compiled()
    home = filled_home(rows)
    started(home)
    warm, cold, bare, read = [], [], [], []
    for _ in range(STARTS):
        bare.append(imports())
        warm.append(started(home))
        home.state.unlink()
        read.append(select(home))
        cold.append(started(home))
    quick, limit = percentile(warm, 50), percentile(bare, 50)
    slow, reading = percentile(cold, 50), percentile(read, 50)
    what = f"start -> ready with {rows:,} events"
    return [
        Row(
            f"{what}, checkpoint",
            "<= 0.5 s",
            f"{quick:.2f} s",
            f"{limit:.2f} s (imports)",
            times(quick, limit),
        ),
        Row(
            f"{what}, no checkpoint",
            "<= 3 s",
            f"{slow:.2f} s",
            f"{limit + reading:.2f} s (imports and a bare SELECT)",
            times(slow, limit + reading),
        ),
    ]


if __name__ == "__main__":
    from tests.benchmarks.table import markdown

    print(markdown(run()))
