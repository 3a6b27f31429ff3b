"""Homes to run commands on: one whose daemon is down, and one whose daemon runs for a whole module."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.cli.cli_home import ALLOW, CliHome, sleeper


@pytest.fixture
def quiet(tmp_path: Path) -> CliHome:
    """A new home without a daemon."""
    home = CliHome(tmp_path / "home")
    home.upulse("init", "--no-engine")
    home.configure(sleeper("demo", 86_399), ALLOW)
    return home


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CliHome]:
    """A home whose daemon runs, and with it one guarded process."""
    home = CliHome(tmp_path_factory.mktemp("live") / "home")
    home.upulse("init", "--no-engine")
    home.configure(sleeper("demo", 86_398), ALLOW)
    home.start_daemon()
    try:
        home.pid_when_up("demo")
        yield home
    finally:
        home.end_everything()
