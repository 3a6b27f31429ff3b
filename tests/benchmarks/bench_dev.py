"""How long an author waits, in `upulse dev` beside a daemon, from a save to what the new rules say."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from tests.benchmarks.bench_cli import took, upulse
from tests.benchmarks.harness import ROOT, compiled, daemon, directory, made_home
from tests.benchmarks.table import Row, percentile, spread, times
from upulse_cli.wiring.offline import make_engine

SAVES = 20
PAUSE = 1.0
"""Seconds between two saves: an author is hardly faster."""
RULE = "rules/disk_fills_up.py"


class Author:
    """Edits a rule in staging, and reads what `upulse dev` says to it."""

    def __init__(self, staging: Path, said: Iterator[dict[str, Any]]) -> None:
        self.rule, self.said = staging / RULE, said
        self.source = self.rule.read_text()

    def wait_for(self, what: str) -> dict[str, Any]:
        """The next word of this kind."""
        return next(one for one in self.said if one["what"] == what)

    def save(self, number: int) -> tuple[float, float]:
        """Milliseconds until the saved rules are live, and until their first verdict is told."""
        began = time.perf_counter()
        self.rule.write_text(f"{self.source}\n# {number}\n")
        self.wait_for("loaded")
        live = time.perf_counter()
        self.wait_for("tick")
        return (live - began) * 1000, (time.perf_counter() - began) * 1000


@contextmanager
def developing(home: Path) -> Iterator[Author]:
    """An author at work."""
    argv = [*upulse(), "dev", "--json", "--home", str(home)]
    child = subprocess.Popen(argv, cwd=ROOT, env=dict(os.environ), stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    try:
        author = Author(home / "staging", map(json.loads, child.stdout))
        author.wait_for("tick")
        yield author
    finally:
        child.terminate()
        with suppress(BrokenPipeError):
            child.communicate(timeout=10)


def run(saves: int = SAVES) -> list[Row]:
    """The median of some saves, beside what a bare interpreter takes to start."""
    compiled()
    with directory() as place:
        home = made_home(place / "home", "")
        make_engine(home)
        with daemon(home), developing(home.path) as author:
            spent = []
            for number in range(saves + 1):
                time.sleep(PAUSE)
                spent.append(author.save(number))
    live, told = zip(*spent[1:], strict=True)
    raw = percentile([took([sys.executable, "-c", "pass"]) for _ in range(10)], 50)
    return [
        Row(
            "save in staging → new rules live in upulse dev",
            "p50 <= 200 ms",
            f"{spread(live)}; their first verdict told: {spread(told)}",
            f"{raw:.0f} ms (python -c pass)",
            times(percentile(live, 50), raw),
        )
    ]


if __name__ == "__main__":
    from tests.benchmarks.table import markdown

    print(markdown(run()))
