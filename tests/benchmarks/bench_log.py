"""The event log beside raw sqlite3 in the same run: `python tests/benchmarks/bench_log.py [--rows N]`."""

import argparse
import asyncio
import sqlite3
import tempfile
import time
import uuid
from collections.abc import Callable
from pathlib import Path

from pulse_adapters.objects.files import FileObjects
from pulse_adapters.sqlite.events import SqliteEventLog, new_id
from pulse_adapters.sqlite.migrate import steps
from pulse_adapters.sqlite.wal import scan
from pulse_core.model.event import Draft
from pulse_core.model.kinds import EffectAcked
from pulse_core.model.moment import Moment

ROUNDS = 3


class SystemClock:
    """The moment, as the kernel tells it."""

    boot = str(uuid.uuid4())

    def now(self) -> Moment:
        """The present moment."""
        return Moment(time.time_ns() // 1000, self.boot, time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1000)


def raw_commits(path: Path, seconds: float) -> float:
    """Single-row commits per second of plain sqlite3 with the same table, WAL and FULL."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.executescript(steps()[0][1])
    row = ("pulse", "h" * 36, None, '{"took_us":1}', b"x" * 32, b"y" * 32)
    sql = "INSERT INTO event VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?)"
    count, start = 0, time.perf_counter()
    while time.perf_counter() - start < seconds:
        count += 1
        connection.execute(sql, (count, new_id(), 1, "b" * 36, 2, "effect-acked", new_id(), *row))
    connection.close()
    return count / seconds


async def callers(log: SqliteEventLog, number: int, seconds: float) -> float:
    """Events per second that so many callers get acknowledged, one event a call."""
    counts = [0] * number
    end = time.perf_counter() + seconds

    async def caller(place: int) -> None:
        while time.perf_counter() < end:
            await log.append(Draft(EffectAcked(took_us=place), subject=new_id()))
            counts[place] += 1

    await asyncio.gather(*(caller(place) for place in range(number)))
    return sum(counts) / seconds


async def fill(log: SqliteEventLog, rows: int) -> None:
    """Bring the log to this many rows."""
    while (left := rows - log.head.seq) > 0:
        await log.append(*(Draft(EffectAcked(took_us=n), subject=new_id()) for n in range(min(left, 2_000))))


async def replay(log: SqliteEventLog) -> float:
    """Events per second that `since` yields."""
    count, start = 0, time.perf_counter()
    async for batch in log.since(0):
        count += len(batch)
    return count / (time.perf_counter() - start)


def timed(work: Callable[[], object]) -> float:
    """Seconds that the work takes."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


async def measure(home: Path, rows: int, seconds: float) -> list[tuple[str, str]]:
    """All lines of the table; rates are the best of three rounds, raw and ours in turn."""
    path, objects = home / "events.db", FileObjects(home / "objects")
    lines = []
    async with SqliteEventLog.open(path, clock=SystemClock(), objects=objects) as log:
        rounds: dict[int, list[float]] = {0: [], 1: [], 10: [], 100: [], 200: []}
        for turn in range(ROUNDS):
            rounds[0].append(raw_commits(home / f"raw-{turn}.db", seconds))
            for number in (1, 10, 100, 200):
                rounds[number].append(await callers(log, number, seconds))
        raw = max(rounds.pop(0))
        lines.append(("raw sqlite3, commits/s", f"{raw:,.0f}"))
        for number, rates in rounds.items():
            lines.append(
                (f"{number} callers, events/s", f"{max(rates):,.0f}  ({max(rates) / raw:.0%} of raw)")
            )
        lines.append(("scan of the -wal, ms", f"{timed(lambda: scan(path)) * 1e3:.0f}"))
        await fill(log, rows)
        rates = [await replay(log) for _ in range(ROUNDS)]
        lines.append((f"replay of {log.head.seq:,} rows, events/s", f"{max(rates):,.0f}"))
    start = time.perf_counter()
    async with SqliteEventLog.open(path, clock=SystemClock(), objects=objects):
        lines.append(("open again, ms", f"{(time.perf_counter() - start) * 1e3:.0f}"))
    return lines


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--dir", help="where to put the files, if not the temporary directory")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.dir) as home:
        for what, value in asyncio.run(measure(Path(home), options.rows, options.seconds)):
            print(f"{what:40} {value}")


if __name__ == "__main__":
    main()
