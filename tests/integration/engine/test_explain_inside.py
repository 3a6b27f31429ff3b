"""`upulse explain` through the user's rules: now, in staging, and as they were."""

import os
import signal
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.integration.cli.cli_home import ALLOW, CliHome, eventually
from tests.integration.engine.engine_home import CALM, WISHING, new_home, save, spoil
from tests.integration.rule_host.rule_host_engines import place_of, rule

FAILING = rule("return 1 / 0  # here", "failing")
COUNTING = rule("return (await inner(prev, curr)).noting(str(curr.own['starts']))", "counting")
LISTED = """
from pulse_core import Projection
from rules.own import counting
RULES = [counting]
PROJECTIONS = {"starts": Projection(0, lambda value, event: value + 1, kinds=frozenset({"daemon-started"}))}
"""


def names(told: dict[str, Any]) -> list[str]:
    return [layer["rule"] for layer in told["rules"]]


def explained(home: CliHome, *words: str) -> dict[str, Any]:
    return dict(home.upulse("explain", "--json", *words).json)


def test_the_users_rules_stand_inside_the_survival_rules(tmp_path: Path) -> None:
    told = explained(new_home(tmp_path / "home", WISHING, ALLOW))
    assert names(told)[0] == "kill_switch"
    assert names(told)[-1] == "wishing"
    assert told["rules"][-1]["outcome"] == "added"
    assert told["rules"][-1]["effects"] == ["my:wish"]
    assert [(effect["key"], effect["rule"]) for effect in told["effects"]] == [("my:wish", "wishing")]


def test_what_is_wished_in_vain_says_why(tmp_path: Path) -> None:
    home = new_home(tmp_path / "home", WISHING)
    home.upulse("silence", "add", "my:*", "--for", "1h", "--why", "new disks")
    told = explained(home)
    assert told["effects"] == []
    (one,) = told["withheld"]
    assert (one["key"], one["rule"]) == ("my:wish", "wishing")
    assert one["why"].startswith("silence: my:wish is held back by the silence 'my:*' of ")
    done = home.upulse("explain")
    assert "my:wish  by wishing: silence: my:wish is held back" in done.out
    assert "Nothing of it is done: no daemon runs" in done.err


def test_rules_of_staging_are_asked_if_they_are_named(tmp_path: Path) -> None:
    home = new_home(tmp_path / "home", CALM)
    save(home, WISHING)
    assert names(explained(home))[-1] == "calm"
    assert names(explained(home, "--engine", "staging"))[-1] == "wishing"


def test_what_a_rule_raises_is_said_with_its_line(tmp_path: Path) -> None:
    told = explained(new_home(tmp_path / "home", FAILING))
    assert told["rules"][-1]["outcome"] == "error"
    assert any(place_of(FAILING) in words for words in told["caveats"])


def test_rules_that_can_not_be_asked_are_a_caveat_and_survival_is_explained(tmp_path: Path) -> None:
    home = new_home(tmp_path / "home", CALM)
    spoil(home)
    told = explained(home, "--engine", "staging")
    assert names(told)[0] == "kill_switch"
    assert "calm" not in names(told)
    assert any("could not be asked" in words and "rules/own.py:2" in words for words in told["caveats"])


def test_a_revision_that_is_none_is_refused(tmp_path: Path) -> None:
    done = new_home(tmp_path / "home", CALM).upulse("explain", "--engine", "nope", code=1)
    assert "nope" in done.err


def test_rules_that_are_switched_off_are_not_asked(tmp_path: Path) -> None:
    told = explained(new_home(tmp_path / "home", CALM, "[engine]\nenabled = false\n"))
    assert "calm" not in names(told)
    assert any("enabled" in words for words in told["caveats"])


@pytest.fixture
def served(tmp_path: Path) -> Iterator[CliHome]:
    """A home whose daemon runs calm rules."""
    home = new_home(tmp_path / "home", CALM, ALLOW)
    home.start_daemon()
    try:
        eventually(lambda: home.status()["engine"]["commit"], "the first commit to be in force")
        yield home
    finally:
        os.kill(home.status()["daemon"]["pid"], signal.SIGKILL)


def test_a_moment_in_the_past_is_explained_by_the_rules_and_projections_of_then(served: CliHome) -> None:
    then = datetime.now(UTC).isoformat()
    save(served, COUNTING)
    (served.path / "staging" / "engine.py").write_text(LISTED)
    served.upulse("promote", "-m", "count", "--gate", "loads")
    now = explained(served)
    assert names(now)[-1] == "counting"
    assert now["rules"][-1]["notes"] == ["1"]
    assert names(explained(served, "--at", then))[-1] == "calm"
