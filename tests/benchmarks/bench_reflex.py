"""From SIGKILL of a guarded process to its replacement, through a real daemon."""

import json
import os
import random
import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from typing import NamedTuple

from pulse_adapters.config.home import Home
from pulse_adapters.ipc.client import Client
from pulse_adapters.sqlite.connect import connect_readonly
from pulse_adapters.workers.control_group import NoControlGroups, own_group
from tests.benchmarks.bare import Bare, victim
from tests.benchmarks.harness import (
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
from tests.control_groups import where_none_can_be_made

KILLS = 300
BARE_EVERY = 3
STAGES = ("process-died", "effect", "effect-executing", "effect-acked")


class Kill(NamedTuple):
    """Who was killed, and when (CLOCK_BOOTTIME, microseconds)."""

    pid: int
    at: int


def config(argv: Sequence[str]) -> str:
    """Settings that restart it a thousand times without a pause."""
    return f"""
[budget]
actions_per_minute = 0

[[process]]
name = "victim"
start = {json.dumps(argv)}
match = "^{argv[0]} {argv[1].replace(".", "[.]")}$"
restart = {{ max = 1000, within = "10m", backoff = "0s", healthy_after = "0s", grace = "0s" }}
"""


def kill_all(home: Home, number: int, bare: Bare) -> list[Kill]:
    """Kill each incarnation some 30 to 60 ms after it was seen, and bare ones in turn: noise is shared."""
    kills: list[Kill] = []
    with Client(home.socket, timeout=30.0) as client:
        for pid in incarnations(client):
            if len(kills) == number:
                return kills
            time.sleep(random.uniform(0.03, 0.06))
            kill = Kill(pid, boot_us())
            with suppress(ProcessLookupError):  # somebody else was quicker: the next one will do
                os.kill(pid, signal.SIGKILL)
                kills.append(kill)
            if len(kills) % BARE_EVERY == 0:
                bare.rest_and_kill(commits=0)
                bare.rest_and_kill(commits=2)
    return kills


def incarnations(client: Client) -> Iterator[int]:
    """The pid of each process that stands for the victim, as soon as the log has seen it up."""
    for item in client.stream("follow", since=0, kinds=["process-up"]):
        yield item["event"]["data"]["pid"]


def stages(home: Home, kills: Sequence[Kill]) -> list[tuple[float, ...]]:
    """For each kill the milliseconds from it to each stage's event."""
    with closing(connect_readonly(home.events)) as log:
        sql = "SELECT kind, mono, data FROM event WHERE kind IN (?, ?, ?, ?) ORDER BY seq"
        rows = log.execute(sql, STAGES).fetchall()
    at = {kill.pid: kill.at for kill in kills}
    found: list[tuple[float, ...]] = []
    for place, (kind, _, data) in enumerate(rows):
        if kind == STAGES[0] and (began := at.get(json.loads(data)["pid"])):
            life = rows[place : place + len(STAGES)]
            if tuple(row[0] for row in life) == STAGES:
                found.append(tuple((row[1] - began) / 1000 for row in life))
    return found


def run(number: int = KILLS) -> list[Row]:
    """The whole arc, where its time goes, what cannot be undercut, and what control groups add."""
    compiled()
    found, bare = measured(number)
    return [*rows(found, bare), without_groups([life[-1] for life in found], number)]


def measured(number: int) -> tuple[list[tuple[float, ...]], Bare]:
    """The stages of so many lives, and the bare ones killed in turn."""
    argv = victim()
    with directory() as place, closing(raw_log(place / "raw.db")) as log, closing(Bare(log)) as bare:
        home = made_home(place / "home", config(argv))
        with children_of(home), daemon(home), deadline(10 + number):
            time.sleep(5)  # the check of the log in the background shall be over
            kills = kill_all(home, number, bare)
            time.sleep(0.5)
        return stages(home, kills), bare


def without_groups(arc: Sequence[float], number: int) -> Row:
    """The arc where no control groups can be made, beside the one with them."""
    what = "- the same without control groups"
    try:
        with where_none_can_be_made(own_group()):
            found, _ = measured(number)
    except (NoControlGroups, OSError) as error:
        return Row(what, "", f"not measured: {error}")
    bare_arc = [life[-1] for life in found]
    more = percentile(arc, 50) - percentile(bare_arc, 50)
    return Row(what, "groups add <= 1 ms", spread(bare_arc), f"{spread(arc)} (with)", f"{more:+.2f} ms")


def rows(found: Sequence[tuple[float, ...]], bare: Bare) -> list[Row]:
    """The table's lines."""
    arc, raw = [life[-1] for life in found], percentile(bare.with_commits, 50)
    steps = [f"{name} {percentile([life[n] for life in found], 50):.2f}" for n, name in enumerate(STAGES)]
    return [
        Row(
            f"SIGKILL -> replacement spawned, {len(found)} kills",
            "p50 <= 4 ms, p99 <= 12 ms",
            spread(arc),
            f"{spread(bare.with_commits)} (pidfd, 2 commits, Popen)",
            times(percentile(arc, 50), raw),
        ),
        Row("- when each event was made, p50 ms", "", ", ".join(steps), f"{spread(bare.without)} (no log)"),
    ]


if __name__ == "__main__":
    from tests.benchmarks.table import markdown

    print(markdown(run()))
