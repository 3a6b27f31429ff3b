"""Homes to run commands on: one whose daemon is down, and one whose daemon runs for a whole module."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.cli.cli_home import ALLOW, CliHome, Inside, sleeper


@pytest.fixture
def quiet(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Inside:
    """A new home without a daemon."""
    home = Inside(tmp_path / "home", capsys)
    home.upulse("init", "--no-engine")
    home.configure(sleeper("demo", 86_399), ALLOW)
    return home


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CliHome]:
    """A home whose daemon runs, and with it one guarded process."""
    home = CliHome(tmp_path_factory.mktemp("served") / "home")
    home.upulse("init", "--no-engine")
    home.configure(sleeper("demo", 86_398), ALLOW)
    home.upulse("daemon", "start")
    try:
        home.pid_when_up("demo")
        yield home
    finally:
        home.end_everything()


@pytest.fixture
def live(served: CliHome, capsys: pytest.CaptureFixture[str]) -> Inside:
    """The served home, commands run in this process."""
    return Inside(served.path, capsys)
