"""Killed at any step of a promote or a rollback, all is before it or after it, and the next command goes on."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from pulse_adapters.config.home import Home
from pulse_adapters.git.repository import Repository
from tests.integration.cli.cli_home import CliHome, eventually
from tests.integration.engine.dying import STEPS
from tests.integration.engine.engine_home import CALM, engine_of, new_home, save
from tests.long_form import sample

ONE_GATE = ("--gate", "compiles", "-m", "other rules")
FASTER = CALM.replace("calm", "calmer")
WHENS = ("before", "after")
COMMANDS = ("mend", "commit-staging", "candidate", "export", "gates", "request")


@pytest.fixture
def home(tmp_path: Path) -> Iterator[CliHome]:
    """A home whose daemon does not run, with other rules in staging."""
    made = new_home(tmp_path / "home", CALM, "[daemon]\ntick_ms = 200\n")
    save(made, FASTER)
    try:
        yield made
    finally:
        made.end_everything()


def killed(home: CliHome, step: str, when: str, *words: str) -> None:
    """The command, killed there."""
    argv = (
        sys.executable,
        "-m",
        "tests.integration.engine.dying",
        step,
        when,
        *words,
        "--home",
        str(home.path),
    )
    done = subprocess.run(argv, capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr


def events(home: CliHome, kind: str) -> list[dict[str, Any]]:
    if not (home.path / "events.db").exists():
        return []
    return home.upulse("events", "--kind", kind, "--json").lines


def own_rules(home: CliHome, folder: str) -> str:
    """The rules there; nothing in the moment in which git replaces the file."""
    with suppress(FileNotFoundError):
        return (home.path / folder / "rules" / "own.py").read_text()
    return ""


def in_force(home: CliHome, commit: str) -> bool:
    """Whether the daemon runs this commit, and main and its files have followed."""
    running = home.status()["engine"]
    return bool(running["runs"] == commit and Repository(home.path).head() == commit)


@pytest.mark.parametrize(
    ("step", "when"),
    sample(
        [("request", "after")],
        list(product(COMMANDS, WHENS)),
    ),
)
def test_a_promote_that_is_killed_changed_nothing_or_is_recorded_and_the_next_one_goes_on(
    home: CliHome, step: str, when: str
) -> None:
    first = Repository(home.path).head()
    killed(home, step, when, "promote", *ONE_GATE)
    is_recorded = (step, when) == ("request", "after")
    assert Repository(home.path).head() == first
    assert "calmer" not in own_rules(home, "engine")
    assert "calmer" in own_rules(home, "staging")
    assert len(events(home, "promote-requested")) == is_recorded
    if is_recorded:
        assert "is answered when a daemon runs" in home.upulse("promote", *ONE_GATE, code=1).err
    else:
        home.upulse("promote", *ONE_GATE)
    (asked,) = events(home, "promote-requested")
    said = home.upulse("deploy", *ONE_GATE)
    assert said.out.strip().splitlines()[-1] == asked["subject"]
    assert "a promote or rollback is asked for already; waiting for it" in said.err
    assert f"{asked['subject'][:12]} is in force" in said.err
    eventually(lambda: in_force(home, asked["subject"]), "main to follow")
    assert own_rules(home, "engine") == own_rules(home, "staging")


@pytest.mark.parametrize(
    ("step", "when"),
    sample([("point-main", "before")], list(product(["lay-out", "point-main"], WHENS))),
)
def test_a_daemon_that_is_killed_in_a_promote_has_not_begun_or_the_next_command_ends_it(
    home: CliHome, step: str, when: str
) -> None:
    home.upulse("promote", *ONE_GATE)
    (asked,) = events(home, "promote-requested")
    killed(home, step, when, "serve")
    if step == "lay-out":
        assert engine_of(Home(home.path)).commit != asked["subject"]
        assert len(engine_of(Home(home.path)).requests) == 1
    else:
        assert engine_of(Home(home.path)).commit == asked["subject"]
        assert "nothing that main lacks" in home.upulse("promote", *ONE_GATE, code=1).err
        assert Repository(home.path).head() == asked["subject"]
        assert own_rules(home, "engine") == own_rules(home, "staging")
    home.start_daemon()
    eventually(lambda: in_force(home, asked["subject"]), "it to be in force")
    assert [one["cause"] for one in events(home, "promote")][1:] == [asked["id"]]


@pytest.mark.parametrize(
    ("step", "when"),
    sample([("going-back", "after")], list(product(["going-back", "point-main"], WHENS))),
)
def test_a_rollback_that_a_daemon_is_killed_in_is_refused_or_the_next_command_ends_it(
    home: CliHome, step: str, when: str
) -> None:
    home.upulse("deploy", *ONE_GATE)
    eventually(lambda: "calmer" in own_rules(home, "engine"), "main to follow")
    bad = engine_of(Home(home.path)).commit
    home.upulse("daemon", "stop")
    home.upulse("rollback")
    save(home, FASTER.replace("calmer", "calmest"))
    killed(home, step, when, "serve")
    assert (engine_of(Home(home.path)).commit == bad) == (step == "going-back")
    if step == "point-main":
        assert "brings back what was taken back" in home.upulse("promote", *ONE_GATE).err
        assert "calmer" not in own_rules(home, "engine")
    home.start_daemon()
    if step == "going-back":
        (refused,) = eventually(lambda: events(home, "promote-refused"), "it to be refused")
        assert "crashed while it carried this out" in refused["data"]["why"]
        home.upulse("rollback")
    (rolled,) = eventually(lambda: events(home, "rollback"), "it to be taken back")
    assert rolled["data"]["rejected"] == bad
    if step == "point-main":
        eventually(lambda: "calmest" in own_rules(home, "engine"), "the promote since to be in force")
    else:
        eventually(lambda: in_force(home, rolled["subject"]), "main to follow")
    assert "calmest" in own_rules(home, "staging")


def test_every_step_is_one_that_something_dies_at() -> None:
    assert {*COMMANDS, "lay-out", "going-back", "point-main"} == {*STEPS}
