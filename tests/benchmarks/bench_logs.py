"""Followed logs: from a line to the effect that it causes, and what a storm of lines costs."""

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NamedTuple

from pulse_adapters.config.home import Home
from pulse_adapters.sqlite.connect import connect_readonly
from tests import processes
from tests.benchmarks import bench_reflex
from tests.benchmarks.bare import Bare, victim
from tests.benchmarks.bench_idle import Cost, cost, memory
from tests.benchmarks.harness import (
    ROOT,
    boot_us,
    children_of,
    compiled,
    daemon,
    deadline,
    directory,
    made_home,
    raw_log,
)
from tests.benchmarks.table import Row, percentile, spread, times

FILES, REST = 60, 1.1
"""Seconds between two lines: those that follow within a second are recorded together."""
PER_SECOND, SECONDS, ONE_IN = 100_000, 10.0, 10
ROTATIONS = 2
KILLS = 150
LIMIT = 600


class Size(NamedTuple):
    """What daemon and reader have cost so far, and their resident memory, MiB."""

    daemon: Cost
    reader: Cost
    rss: tuple[float, float]


def config(place: Path) -> str:
    """A glob, looked at for two words."""
    return f'[[log]]\npath = "{place}/*.log"\nkeywords = ["ERROR", "Traceback"]\nlines_per_minute = {LIMIT}\n'


def reader_of(pid: int) -> int:
    """The daemon's child that reads logs."""
    for child in processes.children(pid, "pulse_adapters.logs.tail"):
        return child
    raise RuntimeError("nobody reads logs")


def to_effects(place: Path) -> list[float]:
    """Milliseconds from each write to `effect-executing` of the notice that it causes, each in a file of its own."""
    logs = place / "logs"
    logs.mkdir()
    home, written = made_home(place / "home", config(logs)), {}
    with children_of(home), daemon(home):
        time.sleep(5)  # the check of the log in the background shall be over
        for number in range(FILES):
            path = logs / f"agent-{number}.log"
            path.touch()
            time.sleep(0.03)
            written[str(path)] = boot_us()
            path.write_text(f"ERROR {number} went wrong\n")
            time.sleep(REST)
        time.sleep(1)
    with closing(connect_readonly(home.events)) as log:
        rows = log.execute(
            "SELECT wish.subject, begun.mono FROM event AS wish JOIN event AS begun ON begun.subject = wish.id"
            " WHERE wish.kind = 'effect' AND begun.kind = 'effect-executing'"
        ).fetchall()
    begun = {subject.removeprefix("notify:log:"): mono for subject, mono in rows}
    if missing := written.keys() - begun.keys():
        raise RuntimeError(f"{len(missing)} lines caused nothing, as {min(missing)}")
    return [(begun[path] - at) / 1000 for path, at in written.items()]


@contextmanager
def storm(path: Path) -> Iterator["subprocess.Popen[str]"]:
    """Lines, as many as the table asks for, in files that are rotated by renaming meanwhile."""
    argv = [sys.executable, "-m", "tests.benchmarks.log_writer", path, PER_SECOND, SECONDS, ONE_IN, ROTATIONS]
    writer = subprocess.Popen(list(map(str, argv)), cwd=ROOT, stdout=subprocess.PIPE, text=True)
    try:
        yield writer
    finally:
        writer.kill()
        writer.wait()


def size(pid: int) -> Size:
    """What they cost now."""
    reader = reader_of(pid)
    return Size(cost(pid), cost(reader), (memory(pid)["Rss"], memory(reader)["Rss"]))


def counted(home: Home) -> tuple[int, int, int]:
    """Lines that the log has counted, lines that it tells, and in how many rows."""
    with closing(connect_readonly(home.events)) as log:
        rows = [
            json.loads(row[0]) for row in log.execute("SELECT data FROM event WHERE kind = 'log-matched'")
        ]
    return sum(row["count"] for row in rows), sum(len(row["lines"]) for row in rows), len(rows)


def in_a_storm(place: Path) -> list[Row]:
    """What a storm costs, and how quick reflexes are meanwhile."""
    logs = place / "logs"
    logs.mkdir()
    argv = victim()
    home = made_home(place / "home", config(logs) + bench_reflex.config(argv))
    with closing(raw_log(place / "raw.db")) as log, closing(Bare(log)) as bare, children_of(home):
        with daemon(home) as (pid, _), deadline(120):
            time.sleep(5)
            bench_reflex.kill_all(home, 30, bare)  # as warm as they will be
            bare.with_commits.clear()
            before = size(pid)
            with storm(logs / "agent.log") as writer:
                kills = bench_reflex.kill_all(home, KILLS, bare)
                said, _ = writer.communicate()
            after = size(pid)
            time.sleep(12)  # what is only counted is told every ten seconds
        found = [life[-1] for life in bench_reflex.stages(home, kills)]
    lines, told, rows = counted(home)
    wrong, took = int(said.split()[0]), float(said.split()[1])
    shares = [getattr(after, who).share_since(getattr(before, who)) for who in ("daemon", "reader")]
    grown = [now - then for now, then in zip(after.rss, before.rss, strict=True)]
    what = f"{PER_SECOND:,} lines a second for {took:.0f} s, one in {ONE_IN} matching"
    raw = percentile(bare.with_commits, 50)
    return [
        Row(
            what, "<= 1 core", f"{sum(shares):.0%} of a core",
            f"reader {shares[1]:.0%}, daemon {shares[0]:.0%} with {len(found)} restarts",
        ),
        Row(
            "- memory", "RSS growth <= 10 MiB", f"reader {grown[1]:+.1f}, daemon {grown[0]:+.1f} MiB",
            f"RSS {after.rss[1]:.1f} + {after.rss[0]:.1f} MiB",
        ),
        Row(
            "- reflex meanwhile", "p99 <= 50 ms", spread(found),
            f"{spread(bare.with_commits)} (pidfd, 2 commits, Popen)", times(percentile(found, 50), raw),
        ),
        Row(
            "- matching lines", "all counted", f"{lines:,} of {wrong:,}, {told} told in {rows} rows",
            f"limit {LIMIT} a minute, rotated {ROTATIONS} times",
        ),
    ]  # fmt: skip


def run() -> list[Row]:
    """Both rows of the table."""
    compiled()
    with directory() as place:
        arc = to_effects(place)
    with directory() as place:
        rows = in_a_storm(place)
    return [Row(f"line written -> effect executing, {len(arc)} files", "p99 <= 50 ms", spread(arc)), *rows]


if __name__ == "__main__":
    from tests.benchmarks.table import markdown

    print(markdown(run()))
