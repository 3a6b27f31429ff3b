"""How long `upulse verify` reads a log of a million events, with its indexes and without them."""

import time
from contextlib import closing

from pulse_adapters.config.home import Home
from pulse_adapters.sqlite.connect import connect_readonly
from pulse_adapters.sqlite.verify import LogWalk, verify
from tests.benchmarks.filled import MILLION, filled_home
from tests.benchmarks.table import Row, percentile, times

TURNS = 3
MOST = 1.5


def with_indexes(home: Home) -> float:
    """Seconds of `verify` as it is; raises AssertionError if it finds a fault."""
    began = time.perf_counter()
    verdict = verify(home.events, home.objects)
    assert not verdict.fault, verdict.fault
    return time.perf_counter() - began


def without_indexes(home: Home) -> float:
    """The same of what `verify` does but to hold each index against the rows."""
    began = time.perf_counter()
    with closing(connect_readonly(home.events)) as connection:
        LogWalk(connection, home.objects).to_end()
        connection.execute("PRAGMA quick_check(1)").fetchone()
    return time.perf_counter() - began


def run(rows: int = MILLION, turns: int = TURNS) -> list[Row]:
    """The median of both, in turn."""
    home = filled_home(rows)
    took = [(with_indexes(home), without_indexes(home)) for _ in range(turns)]
    whole, bare = (percentile(seconds, 50) for seconds in zip(*took, strict=True))
    goal = f"<= {MOST} x of without its indexes"
    return [
        Row(
            f"verify of {rows:,} events",
            goal,
            f"{whole:.2f} s",
            f"{bare:.2f} s (without its indexes)",
            times(whole, bare),
        )
    ]


if __name__ == "__main__":
    from tests.benchmarks.table import markdown

    print(markdown(run()))
