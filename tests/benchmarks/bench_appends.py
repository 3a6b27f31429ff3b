"""Durable appends beside raw sqlite3; `bench_log` looks at more of the log than the table shows."""

import asyncio
from pathlib import Path

from pulse_adapters.host.clock import SystemClock
from pulse_adapters.objects.files import FileObjects
from pulse_adapters.sqlite.events import SqliteEventLog
from tests.benchmarks.bench_log import callers, raw_commits
from tests.benchmarks.harness import directory
from tests.benchmarks.table import Row, percentile, share

ROUNDS, SECONDS = 5, 1.0


async def measure(place: Path, seconds: float) -> tuple[list[float], list[float], list[float]]:
    """Rates of raw commits, of one caller and of a hundred, in turn."""
    raw, one, hundred = [], [], []
    opened = SqliteEventLog.open(
        place / "events.db", clock=SystemClock(), objects=FileObjects(place / "objects")
    )
    async with opened as log:
        for turn in range(ROUNDS):
            raw.append(raw_commits(place / f"raw-{turn}.db", seconds))
            one.append(await callers(log, 1, seconds))
            hundred.append(await callers(log, 100, seconds))
    return raw, one, hundred


def run(seconds: float = SECONDS) -> list[Row]:
    """Medians of the rounds."""
    with directory() as place:
        raw, one, hundred = asyncio.run(measure(place, seconds))
    limit = percentile(raw, 50)
    bare = f"{limit:,.0f} commits/s (sqlite3)"
    single, many = percentile(one, 50), percentile(hundred, 50)
    return [
        Row("durable appends, 1 caller", ">= 45 % of raw", f"{single:,.0f}/s", bare, share(single, limit)),
        Row("durable appends, 100 callers", ">= 40,000/s", f"{many:,.0f}/s (best {max(hundred):,.0f})", bare),
    ]


if __name__ == "__main__":
    from tests.benchmarks.table import markdown

    print(markdown(run()))
