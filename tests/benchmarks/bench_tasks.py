"""Tasks: how soon an agent begins, claims by eight processes at once, ticks, lists and starts with many of them."""

import asyncio
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing
from itertools import chain, count
from pathlib import Path

from pulse_adapters.config.home import Home
from pulse_adapters.host.clock import SystemClock
from pulse_adapters.ipc.client import Client
from pulse_adapters.objects.files import FileObjects
from pulse_adapters.sqlite.connect import connect_readonly
from pulse_adapters.sqlite.events import SqliteEventLog
from pulse_core.daemon import Daemon
from pulse_core.model.errors import PulseError
from pulse_core.model.event import Draft
from pulse_core.model.kinds import ErrorReported
from pulse_core.tasks.events import ProjectSet, TaskAcked, TaskClosed, TaskCreated, TaskExecuting
from tests.benchmarks.bench_cli import took, upulse
from tests.benchmarks.harness import compiled, daemon, directory, made_home
from tests.benchmarks.inside import living
from tests.benchmarks.table import Row, percentile, spread, times

OPEN, CLOSED, FEW = 1_000, 100_000, 100
CLAIMERS, TICKS, CALLS, SPAWNED = 8, 300, 10, 50
LEASE = 900_000_000
CONFIG = "[budget]\nactions_per_minute = 0\n"

AGENT = """[[agent]]
name = "ada"
command = ["/bin/sleep", "0.05"]
concurrency = 50
"""


def id_of(number: int) -> str:
    """The id of an open task."""
    return f"task_open{number:06}"


def opened() -> Iterator[Draft]:
    """A project with open tasks, some of which wait for others."""
    yield Draft(ProjectSet(), "app")
    for number in range(OPEN):
        words = f"Mend the leak in cache {number}"
        made = TaskCreated(project="app", title=words, prompt="It grows. " * 50, labels=("python",))
        yield Draft(made, id_of(number))


def closed(row: Iterator[int], number: int) -> Iterator[Draft]:
    """The lives of so many tasks that are done. row: the number of each event, which is a claim's token."""
    for one in range(number):
        id_ = f"task_done{one:06}"
        yield Draft(TaskCreated(project="app", title=f"Mend leak {one}"), id_)
        yield Draft(TaskExecuting(agent=f"agent-{one % 8}", lease_us=LEASE), id_)
        next(row), next(row)
        yield Draft(TaskAcked(token=next(row) - 1, result="It is mended."), id_)
        yield Draft(TaskClosed(), id_)
        next(row)


async def fill(home: Home, done: int) -> Home:
    """The open tasks, and so many that are done."""
    log_file = SqliteEventLog.open(home.events, clock=SystemClock(), objects=FileObjects(home.objects))
    async with log_file as log:
        drafts = chain(opened(), closed(count(OPEN + 2), done))
        while batch := [draft for _, draft in zip(range(2_000), drafts)]:  # noqa: B905 - the last one is short
            await log.append(*batch)
    return home


def claim_all(socket: Path, agent: int) -> Sequence[float]:
    """Try to claim each task, beginning with another one than the other claimers; when each claim was won."""
    won = []
    with Client(socket) as client:
        for number in range(OPEN):
            subject = id_of((number + agent * OPEN // CLAIMERS) % OPEN)
            data = {"agent": f"agent-{agent}", "lease_us": LEASE}
            try:
                client.ask("append", drafts=[{"kind": "task-executing", "subject": subject, "data": data}])
            except PulseError:
                continue
            won.append(time.monotonic())
    return won


def claims(place: Path) -> Row:
    """How many claims a second eight processes win of each other."""
    home = asyncio.run(fill(made_home(place / "claims", CONFIG), 0))
    with daemon(home), ProcessPoolExecutor(CLAIMERS) as pool:
        list(pool.map(time.sleep, [0.2] * CLAIMERS))  # each is there before the first one claims
        began = time.monotonic()
        won = list(pool.map(claim_all, [home.socket] * CLAIMERS, range(CLAIMERS)))
    moments = sorted(moment for one in won for moment in one)
    if len(moments) != OPEN:
        raise RuntimeError(f"{len(moments)} claims of {OPEN} tasks were won")
    rate = OPEN / (moments[-1] - began)
    return Row(f"claims of {OPEN:,} tasks by {CLAIMERS} processes", ">= 500/s, each once", f"{rate:,.0f}/s")


def spawned(place: Path) -> Row:
    """How long it takes from a task's creation until its agent's program was started, one after the other."""
    home = made_home(place / "spawned", CONFIG + AGENT)
    with daemon(home), Client(home.socket) as client:
        for number in range(SPAWNED):
            drafts = [{"kind": "project-set", "subject": "app"}] if number == 0 else []
            made = {
                "kind": "task-created",
                "subject": id_of(number),
                "data": {"project": "app", "title": "x"},
            }
            for draft in (*drafts, made):
                client.ask("append", drafts=[draft])
            time.sleep(0.3)
        with closing(connect_readonly(home.events)) as log:
            kinds = ("task-created", "agent-run-started")
            began, started = (
                dict(log.execute("SELECT subject, mono FROM event WHERE kind = ?", (kind,))) for kind in kinds
            )
    taken = [(at - began[id_]) / 1000 for id_, at in started.items()]
    return Row("task created -> agent's program started", "p50 <= 15 ms", spread(taken))


async def ticks(home: Home) -> Sequence[float]:
    """Milliseconds of ticks with a whole fold, each with a bit of news."""
    async with living(home) as living_daemon:
        made: Daemon = living_daemon
        taken = []
        for _ in range(TICKS):
            await made.parts.log.append(Draft(ErrorReported(message="news"), subject="bench"))
            await made.ticker.tick("bench")
            await asyncio.sleep(0.005)
            taken.append(made.ticker.took_us[-1] / 1000)
    return taken


def run() -> list[Row]:
    """Claims, ticks beside many tasks and few, and the list."""
    compiled()
    with directory() as place:
        rows = [spawned(place), claims(place)]
        many = asyncio.run(fill(made_home(place / "many", CONFIG), CLOSED))
        few = asyncio.run(fill(made_home(place / "few", CONFIG), FEW))
        began = time.perf_counter()
        with daemon(many):
            start = time.perf_counter() - began
        beside, alone = asyncio.run(ticks(many)), asyncio.run(ticks(few))
        listing, bare = [], []
        for _ in range(CALLS + 1):
            listing.append(took([*upulse(), "task", "list", "--home", str(many.path)]))
            bare.append(took([sys.executable, "-c", "pass"]))
    listed, raw = percentile(listing[1:], 50), percentile(bare[1:], 50)
    late, early = percentile(beside, 50), percentile(alone, 50)
    return [
        *rows,
        Row(f"tick with {CLOSED:,} closed and {OPEN:,} open tasks", "p99 <= 10 ms", spread(beside)),
        Row(
            f"- p50 beside {FEW:,} closed ones",
            "as with them",
            f"{late:.3f} ms",
            f"{early:.3f} ms",
            times(late, early),
        ),
        Row(f"start that folds {4 * CLOSED + OPEN:,} events of tasks", "", f"{start:.1f} s"),
        Row(
            "upulse task list, of these",
            "<= 400 ms",
            f"{listed:.0f} ms",
            f"{raw:.0f} ms (python -c pass)",
            times(listed, raw),
        ),
    ]


if __name__ == "__main__":
    from tests.benchmarks.table import markdown

    print(markdown(run()))
