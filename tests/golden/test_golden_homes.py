"""A home that an earlier release made starts under this one, with all that it holds in force."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.golden.make_home import HOMES, unpack_home
from tests.integration.cli.cli_home import CliHome, eventually

RELEASES = sorted(path.stem for path in HOMES.glob("*.json"))


@pytest.fixture(params=RELEASES)
def release(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture
def kept(release: str) -> dict[str, Any]:
    """What this home must say, as the release that made it wrote it down."""
    loaded: dict[str, Any] = json.loads((HOMES / f"{release}.json").read_text())
    return loaded


@pytest.fixture
def home(release: str, kept: dict[str, Any], tmp_path: Path) -> Iterator[CliHome]:
    """The home, with a daemon of this release running in it."""
    path = tmp_path / "home"
    unpack_home(release, path)
    made = CliHome(path)
    made.upulse("daemon", "start")
    try:
        yield made
    finally:
        made.upulse("process", "stop", kept["process"])
        made.upulse("daemon", "stop")


def test_every_event_the_engine_and_the_settings_are_in_force(home: CliHome, kept: dict[str, Any]) -> None:
    assert home.upulse("verify").out.startswith("ok: ")
    ids = [event["id"] for event in home.upulse("events", "--json").lines]
    assert ids[: len(kept["events"])] == kept["events"]

    eventually(lambda: home.status()["engine"]["rules"], "its rules to run")
    status = home.status()
    assert {name: status["engine"][name] for name in ("commit", "rules")} == kept["engine"]
    assert [process["name"] for process in status["processes"]] == [kept["process"]]
    home.upulse("config", "check")  # fails if a setting of that release is none any more
