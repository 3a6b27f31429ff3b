"""`upulse shadow`: other rules on a real daemon's ticks, of which nothing comes."""

import os
import resource
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from pulse_adapters.config.home import Home
from pulse_adapters.files.shadow_log import NAME, FileShadowLog, previous_file, shadow_lines
from pulse_core.app.engine.shadow import shadow_differences
from pulse_core.model.errors import PulseError
from tests.integration.cli.cli_home import ALLOW, CliHome, eventually
from tests.integration.engine.engine_home import CALM, PATIENT, WISHING, new_home, save, spoil
from tests.integration.rule_host.rule_host_engines import rule
from upulse_cli.wiring import shadow
from upulse_cli.wiring.home import home_context

OFTEN = f'[daemon]\ntick_ms = 200\n{PATIENT}repeat = "1s"\n{ALLOW}'
LEAVING = rule(
    "if curr.tick % 4 == 0:\n    os._exit(3)  # here\nreturn await inner(prev, curr)",
    "leaving",
    before="import os",
)


@pytest.fixture
def homes(tmp_path: Path) -> Iterator["Homes"]:
    made = Homes(tmp_path)
    try:
        yield made
    finally:
        made.end()


@pytest.fixture(scope="module")
def calm_for_all(tmp_path_factory: pytest.TempPathFactory) -> Iterator["Homes"]:
    """One daemon for all that only look at it."""
    made = Homes(tmp_path_factory.mktemp("calm"))
    try:
        made.served(CALM)
        yield made
    finally:
        made.end()


@pytest.fixture(scope="module")
def wishing_for_all(tmp_path_factory: pytest.TempPathFactory) -> Iterator["Homes"]:
    """Another one, whose rules wish."""
    made = Homes(tmp_path_factory.mktemp("wishing"))
    try:
        made.served(WISHING)
        yield made
    finally:
        made.end()


@pytest.fixture
def calm(calm_for_all: "Homes") -> Iterator[CliHome]:
    """A daemon of calm rules, without a shadow."""
    save(calm_for_all.home, CALM)
    yield calm_for_all.home
    calm_for_all.end_shadow()


@pytest.fixture
def wishing(wishing_for_all: "Homes") -> Iterator[CliHome]:
    """A daemon of rules that wish, without a shadow."""
    save(wishing_for_all.home, WISHING)
    yield wishing_for_all.home
    wishing_for_all.end_shadow()


class Homes:
    """Makes a home whose daemon runs, and ends that daemon and its shadow."""

    def __init__(self, beneath: Path) -> None:
        self.home = CliHome(beneath / "home")

    def served(self, source: str) -> CliHome:
        new_home(self.home.path, source, OFTEN).start_daemon()
        eventually(lambda: self.home.status()["engine"]["commit"], "the first commit to be in force")
        return self.home

    def end(self) -> None:
        if found := shadow.running(Home(self.home.path)):
            with suppress(ProcessLookupError):
                os.kill(found.pid, signal.SIGKILL)
        self.home.end_everything()

    def end_shadow(self) -> None:
        """Let the next test find none, and nothing that one has told."""
        if shadow.running(Home(self.home.path)):
            self.home.upulse("shadow", "stop")
        for file in self.home.path.glob("shadow.jsonl*"):
            file.unlink()


def reported(home: CliHome) -> dict[str, Any]:
    return dict(shadow.report(home_context(Home(home.path))))


def wishes_of(home: CliHome, whose: str, least: int) -> bool:
    return bool(reported(home)["wishes"][whose] >= least)


def test_what_a_shadow_wishes_is_reported_and_never_recorded(calm: CliHome, tmp_path: Path) -> None:
    save(calm, WISHING)
    pid = int(calm.upulse("shadow", "start").out)
    eventually(lambda: wishes_of(calm, "shadow", 1), "a wish of the shadow")
    calm.upulse("backup", str(tmp_path / "backup"))
    calm.upulse("restore", str(tmp_path / "backup"), code=1)
    found = shadow.running(Home(calm.path))
    assert found is not None
    assert found.pid == pid, "a restore that was refused has ended it"
    eventually(lambda: reported(calm)["ticks"] >= 5, "some ticks more")
    calm.upulse("shadow", "stop")
    told = calm.upulse("shadow", "report", "--json", code=3).json
    (one,) = told["differences"]  # what is wished tick after tick is one wish
    assert (one["only"], one["key"], one["rule"], one["reason"]) == (
        "shadow",
        "my:wish",
        "wishing",
        "it is time",
    )
    assert told["rules"] == ["wishing"]
    assert not told["running"]
    assert "my:wish" not in calm.upulse("events", "--kind", "effect", "--json").out
    assert "+ " in calm.upulse("shadow", "report", code=3).out


def test_a_shadow_of_what_is_in_force_differs_in_nothing(wishing: CliHome) -> None:
    wishing.upulse("shadow", "start", "main")
    eventually(lambda: wishes_of(wishing, "main", 3), "three wishes of production")
    wishing.upulse("shadow", "stop")
    told = wishing.upulse("shadow", "report", "--json").json
    assert told["differences"] == []
    assert told["wishes"]["shadow"] == told["wishes"]["main"] >= 3


def test_what_production_wishes_and_the_shadow_does_not_is_a_difference_too(wishing: CliHome) -> None:
    save(wishing, CALM)
    wishing.upulse("shadow", "start")
    eventually(lambda: wishes_of(wishing, "main", 1), "a wish of production")
    assert {one["only"] for one in reported(wishing)["differences"]} == {"main"}


def test_a_shadow_that_fails_is_started_again_and_its_faults_are_told(calm: CliHome) -> None:
    save(calm, LEAVING)
    calm.upulse("shadow", "start")
    eventually(lambda: reported(calm)["errors"] >= 2, "two failures")
    faults = reported(calm)["faults"]
    assert any("rule:leaving" in fault["words"] and "status 3" in fault["words"] for fault in faults)
    assert calm.status()["engine"]["restarts"] == 0


def test_rules_that_do_not_load_cast_no_shadow(calm: CliHome) -> None:
    spoil(calm)
    assert "rules/own.py:2" in calm.upulse("shadow", "start", code=1).err
    assert shadow.running(Home(calm.path)) is None


def test_a_shadow_waits_for_the_next_daemon_when_one_stops_and_a_restore_ends_it(
    homes: Homes, tmp_path: Path
) -> None:
    home = homes.served(CALM)
    save(home, WISHING)
    pid = home.upulse("shadow", "start").out.strip()
    eventually(lambda: reported(home)["ticks"] >= 3, "some ticks")
    said = home.upulse("daemon", "stop").err
    assert f"A shadow (process {pid}) waits for the next daemon" in said
    assert "upulse shadow stop" in said
    before = reported(home)["ticks"]
    home.start_daemon()
    eventually(lambda: reported(home)["ticks"] >= before + 3, "ticks of the next daemon")
    assert reported(home)["running"]
    a_restore_ends_the_shadow_of_the_log_that_it_replaces(home, tmp_path)
    home.start_daemon()
    home.upulse("shadow", "start")
    home.upulse("shadow", "stop")
    assert "shadow" not in home.upulse("daemon", "stop").err


def a_restore_ends_the_shadow_of_the_log_that_it_replaces(home: CliHome, tmp_path: Path) -> None:
    home.upulse("backup", str(tmp_path / "backup"))
    assert (tmp_path / "backup" / "shadow.jsonl").exists()
    home.upulse("daemon", "stop")
    said = home.upulse("restore", str(tmp_path / "backup")).err
    assert "the shadow (process " in said
    assert "begin another one with: upulse shadow start" in said
    assert shadow.running(Home(home.path)) is None
    assert reported(home)["ended"] == "it was stopped"


def test_there_is_one_shadow_at_a_time_and_it_ends_when_told(calm: CliHome) -> None:
    pid = int(calm.upulse("shadow", "start").out)
    found = shadow.running(Home(calm.path))
    assert found is not None
    assert found.pid == pid
    assert f"process {pid}" in calm.upulse("shadow", "start", code=1).err
    calm.upulse("shadow", "stop")
    assert shadow.running(Home(calm.path)) is None
    assert "no shadow runs" in calm.upulse("shadow", "stop", code=1).err
    assert reported(calm)["ended"] == "it was stopped"


def test_without_a_daemon_there_is_nothing_to_shadow(tmp_path: Path) -> None:
    home = new_home(tmp_path / "home")
    assert "no daemon runs" in home.upulse("shadow", "start", code=1).err
    assert "no shadow yet" in home.upulse("shadow", "report", code=1).err


def test_a_diary_is_two_files_at_most_and_knows_how_its_shadow_began(tmp_path: Path) -> None:
    diary = FileShadowLog(tmp_path, largest=2_000)
    diary.begin(revision="first")
    diary.begin(revision="second")
    for tick in range(100):
        diary.write("wish", tick=tick)
    said = list(shadow_lines(tmp_path))
    assert said[0]["revision"] == "second"
    assert said[-1]["tick"] == 99
    assert sorted(path.name for path in tmp_path.iterdir()) == ["shadow.jsonl", "shadow.jsonl.1"]
    assert max(path.stat().st_size for path in tmp_path.iterdir()) <= 2_000


def test_a_line_that_was_broken_off_is_passed_over(tmp_path: Path) -> None:
    diary = FileShadowLog(tmp_path)
    diary.begin(revision="first")
    with diary.path.open("a") as file:
        file.write('{"what": "wi\n')
    diary.write("wish", tick=1)
    assert [line["what"] for line in shadow_lines(tmp_path)] == ["begun", "wish"]
    assert not previous_file(diary.path).exists()


def test_a_shadow_whose_beginning_no_disk_takes_does_not_pass_for_the_one_before(tmp_path: Path) -> None:
    first, limit = FileShadowLog(tmp_path), resource.getrlimit(resource.RLIMIT_FSIZE)
    first.begin(revision="first")
    resource.setrlimit(resource.RLIMIT_FSIZE, (first.path.stat().st_size + 20, limit[1]))
    try:
        with pytest.raises(PulseError, match=r"shadow\.jsonl can't be written: File too large"):
            FileShadowLog(tmp_path).begin(revision="second")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
    assert [line["revision"] for line in shadow_lines(tmp_path)] == ["first"]
    FileShadowLog(tmp_path).begin(revision="third")
    assert [line["revision"] for line in shadow_lines(tmp_path)] == ["third"]


def wish(key: str, tick: int, second: int) -> dict[str, Any]:
    return {"key": key, "tick": tick, "at": f"2026-01-01T00:00:{second:02}Z"}


def test_wishes_of_one_key_near_each_other_are_the_same() -> None:
    theirs = [wish("a", 1, 0), wish("a", 30, 30), wish("b", 1, 0)]
    ours = [wish("a", 2, 1), wish("a", 40, 40), wish("c", 1, 0)]
    found = [(one["only"], one["key"], one["tick"]) for one in shadow_differences(theirs, ours)]
    assert found == [("shadow", "b", 1), ("main", "c", 1), ("shadow", "a", 30), ("main", "a", 40)]


@pytest.mark.timeout(120)
def test_a_pipe_in_the_place_of_its_file_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / NAME)
    with pytest.raises(PulseError, match="can't be read: it is no plain file"):
        list(shadow_lines(tmp_path))
