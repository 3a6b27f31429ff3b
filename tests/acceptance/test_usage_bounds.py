"""A guarded tree that takes too much: measured, shown, restarted, told; what its processes share counts once."""

import json
import re
import sys
from pathlib import Path
from typing import Any

from pulse_adapters.sqlite.event_reader import SqliteEventReader
from pulse_core.ports.readers import EventQuery
from tests.acceptance.conftest import Served
from tests.integration.cli.cli_home import CliHome

LEAKS_ONCE = """
import os, sys, time
if os.fork() == 0 and not os.path.exists(sys.argv[1]):
    open(sys.argv[1], "w").close()
    held = bytearray(os.urandom(1) * (120 << 20))
time.sleep(600)
"""
SHARES = """
import os, time
held = bytearray(os.urandom(1) * (60 << 20))
os.fork()
os.fork()
time.sleep(600)
"""
HALF_A_CORE = """
import time
while True:
    until = time.thread_time() + 0.02
    while time.thread_time() < until:
        pass
    time.sleep(0.02)
"""


def configure(served: Served, name: str, program: str, *more: str) -> None:
    argv = json.dumps([sys.executable, "-c", program, *more[:1]])
    served.configure(f"""
[watch]
usage_interval = "100ms"

[[process]]
name = "{name}"
start = {argv}
{chr(10).join(more[1:])}
""")


def events(served: Served, *kinds: str) -> list[dict[str, Any]]:
    with SqliteEventReader(served.home.path) as log:
        return [
            {"subject": row.subject, **json.loads(row.data)} for row in log.events(EventQuery(kinds=kinds))
        ]


def usage(served: Served, name: str) -> dict[str, Any]:
    found: dict[str, Any] = served.process(name)["usage"] or {}
    return found


def test_a_tree_that_leaks_is_restarted_and_the_incident_ends(served: Served, tmp_path: Path) -> None:
    bounds = ('memory_max = "100M"', 'for = "300ms"', 'then = "restart"')
    configure(served, "agent", LEAKS_ONCE, str(tmp_path / "leaked"), *bounds)
    served.start()
    first = served.pid_when_up("agent")
    assert served.pid_when_up("agent", other_than=first)
    served.eventually(lambda: events(served, "condition-cleared"), "the condition is over")
    (raised,) = events(served, "condition-raised")
    assert raised["subject"] == "usage:agent:memory"
    assert re.fullmatch(
        r"agent takes [\d.]+ MiB of memory \(allowed: 100\.0 MiB\), for at least \d+ m?s", raised["evidence"]
    )
    wishes = [one for one in events(served, "effect") if one["action"] == "restart-process"]
    assert wishes[-1]["params"] == {"process": "agent", "for_condition": "usage:agent:memory"}
    assert wishes[-1]["reason"] == raised["evidence"]
    died = [one for one in events(served, "process-died") if one["pid"] == first]
    assert [one["evidence"].partition("; ")[2] for one in died] == [
        f"{raised['evidence']}; Pulse ended it to restart it"
    ]
    served.eventually(lambda: usage(served, "agent").get("processes") == 2, "its whole tree is measured")
    taken = usage(served, "agent")
    assert 1 << 20 < taken["memory"] < 100 << 20
    assert taken["threads"] == 2
    assert taken["descriptors"] >= 6


def test_what_processes_share_counts_once_and_cores_are_told(served: Served) -> None:
    configure(served, "agent", SHARES, "-", 'memory_max = "150M"', 'for = "0s"', "cpu_max = 8.5")
    served.start()
    served.pid_when_up("agent")

    def whole_tree() -> bool:
        taken = usage(served, "agent")
        return taken.get("processes") == 4 and taken["memory"] > 60 << 20 and "cpu" in taken

    served.eventually(whole_tree, "all four processes are measured")
    assert usage(served, "agent")["memory"] < 150 << 20
    assert not events(served, "condition-raised")


def test_too_many_cores_are_told_to_a_person(served: Served) -> None:
    configure(served, "agent", HALF_A_CORE, "-", "cpu_max = 0.02", 'for = "200ms"')
    served.start()
    pid = served.pid_when_up("agent")
    told = served.eventually(
        lambda: [one for one in events(served, "effect") if one["action"] == "notify"], "a notice"
    )
    assert told[0]["params"]["title"] == "agent takes too much CPU"
    assert served.pid_when_up("agent") == pid


def test_a_bound_that_is_raised_or_taken_away_ends_the_alarm_and_nobody_is_told_that_it_takes_less(
    served: Served,
) -> None:
    def bound(*more: str) -> None:
        configure(served, "agent", SHARES, "-", *more)

    def ended(times: int) -> list[dict[str, Any]]:
        over = events(served, "condition-cleared")
        return over if len(over) == times else []

    bound('memory_max = "20M"', 'for = "0s"')
    served.start()
    upulse = CliHome(served.home.path).upulse
    served.eventually(lambda: events(served, "condition-raised"), "it takes too much")
    served.eventually(lambda: usage(served, "agent").get("processes") == 4, "all of it is measured")
    bound('memory_max = "2G"', 'for = "0s"')
    upulse("daemon", "reload")
    (raised,) = served.eventually(lambda: ended(1), "the bound was raised")
    words = re.compile(r"agent takes [\d.]+ MiB of memory \(allowed: 2.0 GiB\)")
    assert words.fullmatch(raised["evidence"])
    told = served.eventually(
        lambda: [one for one in events(served, "effect") if one["params"].get("over")], "it is told"
    )
    assert words.fullmatch(told[0]["params"]["text"])
    bound('memory_max = "20M"', 'for = "0s"')
    upulse("daemon", "reload")
    served.eventually(lambda: len(events(served, "condition-raised")) == 2, "it takes too much again")
    bound()
    upulse("daemon", "reload")
    (_, gone) = served.eventually(lambda: ended(2), "it has no bound any more")
    assert (gone["evidence"], gone["unwatched"]) == ("the settings set no bound for it any more", True)
