"""A large payload is lost: the daemon says so and does not start, until a person accepts that."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.cli.cli_home import ALLOW, CliHome

LARGE = f"argv={json.dumps(['true', 'x' * 40_000])}"


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with three effects, the second too large for its row."""
    home = CliHome(tmp_path_factory.mktemp("prepared") / "home")
    home.upulse("init", "--no-engine")
    home.configure(ALLOW)
    home.upulse("effect", "add", "run-command", "--key", "a", "--param", 'argv=["true"]')
    home.upulse("effect", "add", "run-command", "--key", "b", "--param", LARGE)
    home.upulse("effect", "add", "run-command", "--key", "c", "--param", 'argv=["true"]')
    return home.path


@pytest.fixture
def home(prepared: Path, tmp_path: Path) -> Iterator[CliHome]:
    """A copy of that home; its daemon, if any, is ended afterwards."""
    home = CliHome(Path(shutil.copytree(prepared, tmp_path / "home")))
    yield home
    home.end_everything()


def payload(home: CliHome) -> Path:
    (path,) = (path for path in (home.path / "objects").rglob("*") if path.stat().st_size > 32_768)
    return path


def accepted(home: CliHome) -> list[str]:
    events = home.upulse("events", "--json", "--kind", "damage-accepted").lines
    return [event["data"]["what"] for event in events]


def forget(home: CliHome) -> None:
    """Delete the checkpoints, so that the next start folds all rows anew."""
    for path in home.path.glob("state.db*"):
        path.unlink()


def test_the_daemon_does_not_start_past_a_lost_payload_unless_that_is_accepted(home: CliHome) -> None:
    path = payload(home)
    path.unlink()
    refused = home.upulse("daemon", "start", code=1).err
    assert "the payload of row 2 (effect) is lost" in refused
    assert path.name in refused
    assert "upulse daemon start --accept-damage" in refused
    assert "the payload of row 2 (effect) is lost" in home.upulse("pause", code=1).err

    home.start_daemon("--accept-damage")
    (what,) = accepted(home)
    assert what == f"the payload of row 2 (effect): the object {path} is missing (No such file or directory)"
    assert (home.path / "damaged" / "1" / "events.db").exists()
    home.upulse("effect", "add", "run-command", "--key", "d", "--param", 'argv=["true"]', "--wait")
    home.upulse("daemon", "stop")
    forget(home)
    home.start_daemon()
    assert home.status()["effects"]["acked"] == 3
    assert len(accepted(home)) == 1
    assert "the payload of row 2 is lost" in home.upulse("verify", code=1).out


def test_the_story_of_an_effect_whose_payload_is_lost_says_so_and_names_no_action_none(home: CliHome) -> None:
    payload(home).unlink()
    for words in (home.upulse("why", "b").out, home.upulse("effect", "show", "b").out):
        assert "damaged" in words
        assert "None" not in words
        assert "by hand" not in words
    assert "an action that can't be read any more, requested by" in home.upulse("why", "b").out
    assert "params" not in home.upulse("why", "b").out


def test_checkpoints_know_a_lost_payload_and_acceptance_leaves_them(home: CliHome) -> None:
    home.start_daemon()
    home.upulse("effect", "add", "run-command", "--key", "d", "--param", 'argv=["true"]', "--wait")
    home.upulse("daemon", "stop")
    before = home.status()["effects"]["acked"]
    payload(home).unlink()
    home.start_daemon()
    home.upulse("daemon", "stop")
    home.start_daemon("--accept-damage")
    assert home.status()["effects"]["acked"] == before == 4
    assert len(accepted(home)) == 1


def test_nothing_is_accepted_where_nothing_is_lost(home: CliHome) -> None:
    home.start_daemon("--accept-damage")
    assert accepted(home) == []
    assert list((home.path / "damaged").iterdir()) == []


def test_the_status_without_a_daemon_says_it_too(home: CliHome) -> None:
    assert home.status()["log"]["damage"] is None
    path = payload(home)
    path.unlink()
    standing = home.status()
    assert standing["log"]["damage"].startswith(f"row 2 (effect): its payload is lost: the object {path}")
    assert standing["effects"]["pending"] == 2
    assert "DAMAGED LOG row 2" in home.upulse("status").out
