"""What Pulse costs, part by part: each watcher, each process that helps the daemon, each rule."""

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pulse_adapters.config.home import Home
from pulse_adapters.ipc.client import Client
from pulse_adapters.sqlite.vitals_reader import SqliteVitalsReader
from pulse_core.model.errors import NotAnswering
from pulse_core.model.moment import iso
from pulse_core.model.tick import LayerOutcome

SOON = 2.0
"""Seconds after which a daemon counts as not answering."""

OURS = ("pulse_adapters.", "upulse_cli.")
TICKS_PER_SECOND, PAGE = os.sysconf("SC_CLK_TCK"), os.sysconf("SC_PAGE_SIZE")
Told = Mapping[str, Any]


def profile(home: Home, since: int) -> Told:
    """Costs as JSON values; `watchers` and `helpers` are None while no daemon answers.

    since: UTC microseconds. It bounds the recorded ticks; watchers are told over their newest looks.
    """
    asked = asked_of_daemon(home)
    with SqliteVitalsReader(home.path) as vitals:
        ticks = list(vitals.layers_since(since))
    return {
        "since": iso(since),
        "watchers": asked["watchers"] if asked else None,
        "helpers": list(helpers(asked["pid"])) if asked else None,
        "ticks": spent([took for took, _ in ticks]),
        "rules": rules([layer for _, layers in ticks for layer in layers]),
    }


def asked_of_daemon(home: Home) -> Told | None:
    """Its pid and what its watchers cost, or None: nobody answers, or a version that does not tell."""
    try:
        with Client(home.socket, SOON) as client:
            standing = client.ask("status")
    except NotAnswering:
        return None
    watchers = standing.get("watchers")
    return {"pid": standing["daemon"]["pid"], "watchers": watchers} if watchers is not None else None


def rules(layers: Sequence[LayerOutcome]) -> list[Told]:
    """What each rule costs, the dearest first."""
    took: dict[str, list[int]] = {}
    errors: dict[str, int] = {}
    for one in layers:
        took.setdefault(one.rule, []).append(one.took_us)
        errors[one.rule] = errors.get(one.rule, 0) + (one.outcome == "error")
    whole = sum(map(sum, took.values()))
    told = [
        {"rule": rule, **spent(each), "errors": errors[rule], "share": sum(each) / whole if whole else 0.0}
        for rule, each in took.items()
    ]
    return sorted(told, key=lambda one: -one["share"])


def spent(took: Sequence[int]) -> dict[str, Any]:
    """How often something was done, and what that took: microseconds, None if it never was."""
    ordered = sorted(took)
    return {
        "calls": len(ordered),
        "p50_us": percentile(ordered, 50),
        "p99_us": percentile(ordered, 99),
        "total_us": sum(ordered),
    }


def percentile(ordered: Sequence[int], percent: int) -> int | None:
    """The value that so many percent of these do not exceed."""
    return ordered[min(len(ordered) - 1, len(ordered) * percent // 100)] if ordered else None


def helpers(daemon: int) -> Iterator[Told]:
    """The daemon's own child processes: the share of a core that each used since its start, its memory (bytes)."""
    for pid in children(daemon):
        words = read(pid, "cmdline").split("\0")
        module = words[words.index("-m") + 1] if "-m" in words[:-1] else ""
        fields = read(pid, "stat").rpartition(") ")[2].split()
        if module.startswith(OURS) and len(fields) > 21:
            cpu, began = int(fields[11]) + int(fields[12]), int(fields[19])
            lived = time.clock_gettime(time.CLOCK_BOOTTIME) - began / TICKS_PER_SECOND
            share = cpu / TICKS_PER_SECOND / max(lived, 1.0)
            yield {"module": module, "pid": pid, "cpu": share, "rss": int(fields[21]) * PAGE}


def children(pid: int) -> list[int]:
    """The processes that any thread of this one has begun."""
    try:
        threads = os.listdir(f"/proc/{pid}/task")
    except OSError:
        return []
    return sorted(int(word) for thread in threads for word in read(pid, f"task/{thread}/children").split())


def read(pid: int, file: str) -> str:
    """A file of a process; nothing if the process is gone."""
    try:
        with open(f"/proc/{pid}/{file}", encoding="utf-8", errors="replace") as found:
            return found.read()
    except OSError:
        return ""
