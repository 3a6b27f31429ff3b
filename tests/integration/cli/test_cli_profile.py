"""`upulse profile`: what each part of Pulse costs."""

import os
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from pulse_adapters.host.system_watcher import child_costs
from pulse_adapters.sqlite.vitals import SqliteVitals
from pulse_core.app.profile import rules, spent
from pulse_core.model.event import Head
from pulse_core.model.moment import Moment
from pulse_core.model.tick import LayerOutcome, TickRecord
from tests.integration.cli.cli_home import CliHome, eventually
from tests.processes import as_worker, child_of_test

MINUTE = 60_000_000


def tick(number: int, at: int, *layers: LayerOutcome) -> TickRecord:
    return TickRecord(
        tick=number,
        moment=Moment(at, "boot", number),
        woken_by="timer",
        head=Head(1),
        samples=(),
        settings="",
        version="0",
        layers=layers,
        effects=(),
        tick_ms=1,
        took_us=1_000 * number,
    )


async def ticked(home: CliHome) -> None:
    """Ticks of ninety, thirty and one minutes ago; a rule failed in the last one."""
    now = time.time_ns() // 1000
    async with SqliteVitals.open(home.path / "vitals.db") as vitals:
        for number, age in ((1, 90), (2, 30), (3, 1)):
            outcome = "error" if number == 3 else "passed"
            layers = (LayerOutcome("guard", "passed", (), 10 * number), LayerOutcome("dear", outcome, (), 90))
            vitals.record(tick(number, now - age * MINUTE, *layers))


def rule(told: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    return next(one for one in told["rules"] if one["rule"] == name)


def test_a_running_daemon_tells_what_watchers_and_rules_cost(live: CliHome) -> None:
    told = eventually(lambda: (one := live.upulse("profile", "--json").json)["rules"] and one, "a tick")
    watchers = {one["name"]: one for one in told["watchers"]}
    assert {"process-alive", "system-resource"} <= watchers.keys()
    assert watchers["process-alive"]["looks"] > 0
    assert watchers["system-resource"]["p99_ms"] > 0
    assert sum(one["share"] for one in told["rules"]) == pytest.approx(1)
    assert rule(told, "kill_switch")["calls"] == told["ticks"]["calls"]
    text = live.upulse("profile")
    for word in ("process-alive", "kill_switch", "of all"):
        assert word in text.out
    assert text.err == ""


def test_what_status_tells_of_watchers_is_what_profile_shows(live: CliHome) -> None:
    named = [one["name"] for one in live.status()["watchers"]]
    assert named == [one["name"] for one in live.upulse("profile", "--json").json["watchers"]]


async def test_without_a_daemon_rules_are_told_from_the_recorded_ticks(quiet: CliHome) -> None:
    await ticked(quiet)
    told = quiet.upulse("profile", "--json").json
    assert (told["watchers"], told["helpers"], told["ticks"]["calls"]) == (None, None, 2)
    assert [(one["rule"], one["calls"], one["errors"]) for one in told["rules"]] == [
        ("dear", 2, 1),
        ("guard", 2, 0),
    ]
    assert rule(told, "guard")["share"] == pytest.approx(50 / 230)
    said = quiet.upulse("profile")
    assert "No daemon answers" in said.err
    assert "2 ticks" in said.out


async def test_since_says_which_ticks_count(quiet: CliHome) -> None:
    await ticked(quiet)
    calls = {
        since: quiet.upulse("profile", "--json", "--since", since).json["ticks"]["calls"]
        for since in ("2h", "1h", "10m", "1ms")
    }
    assert calls == {"2h": 3, "1h": 2, "10m": 1, "1ms": 0}
    assert "choose a longer --since" in quiet.upulse("profile", "--since", "1ms").err
    assert "--since" in quiet.upulse("profile", "--since", "soon", code=2).err


def test_a_rule_is_told_with_its_own_time() -> None:
    layers = [LayerOutcome("a", "passed", (), us) for us in range(100)]
    layers.append(LayerOutcome("b", "error", ("ValueError",), 4_950))
    dear, cheap = rules(layers)
    assert (dear["rule"], dear["calls"], dear["errors"], dear["share"]) == ("a", 100, 0, 0.5)
    assert (dear["p50_us"], dear["p99_us"], dear["total_us"]) == (50, 99, 4_950)
    assert (cheap["rule"], cheap["errors"]) == ("b", 1)
    assert rules([]) == []
    assert spent([]) == {"calls": 0, "p50_us": None, "p99_us": None, "total_us": 0}


def test_rules_that_took_no_time_have_no_share() -> None:
    assert [one["share"] for one in rules([LayerOutcome("a", "passed")])] == [0.0]


def test_helpers_are_children_that_run_our_modules(tmp_path: Path) -> None:
    """A guarded process is a child of the daemon too, and none of its costs."""
    argv = [sys.executable, "-m", "upulse_cli.metrics_process", "--home", str(tmp_path)]
    with (
        child_of_test(subprocess.Popen(["sleep", "86421"])) as theirs,
        child_of_test(subprocess.Popen(as_worker(*argv), stdin=subprocess.PIPE)) as ours,
    ):
        try:
            seen = eventually(
                lambda: [one for one in child_costs(os.getpid()) if one["pid"] == ours.pid], "it"
            )
            assert (seen[0]["module"], seen[0]["rss"] > 0) == ("upulse_cli.metrics_process", True)
            assert theirs.pid not in [one["pid"] for one in child_costs(os.getpid())]
        finally:
            ours.kill()
            theirs.kill()


def test_of_a_process_that_is_gone_there_are_no_child_costs() -> None:
    with child_of_test(subprocess.Popen(["true"])) as child:
        child.wait(timeout=60)
    assert list(child_costs(child.pid)) == []
