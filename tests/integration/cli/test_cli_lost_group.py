"""The socket's group vanished from the machine: that is said loudly, and what guards processes starts all the same."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.cli.cli_home import ALLOW, CliHome, sleeper

GONE = '[socket]\ngroup = "no-such-group"\n'
SAID = "socket.group: there is no group 'no-such-group' on this machine"
OWNER_ALONE = "the socket is for its owner alone"


@pytest.fixture
def home(tmp_path: Path) -> Iterator[CliHome]:
    """A home whose settings name a group that is gone; whatever daemon runs in it is ended."""
    home = CliHome(tmp_path / "home")
    home.upulse("init", "--no-engine")
    home.configure(GONE, sleeper("demo", 86_395), ALLOW)
    yield home
    home.end_everything()


def test_the_daemon_starts_guards_and_says_what_is_missing(home: CliHome) -> None:
    started = home.upulse("daemon", "start").err
    assert f"config.toml:2: {SAID}" in started
    assert OWNER_ALONE in started
    home.pid_when_up("demo")
    socket = (home.path / "run" / "pulse.sock").stat()
    assert (stat.S_IMODE(socket.st_mode), socket.st_uid) == (0o600, os.getuid())
    (error,) = home.upulse("events", "--json", "--kind", "error").lines
    assert error["subject"] == "socket"
    assert "no group 'no-such-group'" in error["data"]["message"]
    assert OWNER_ALONE in error["data"]["message"]
    (fault,) = home.status()["settings_faults"]
    assert SAID in fault
    assert OWNER_ALONE in fault
    assert "no group 'no-such-group'" in home.upulse("daemon", "logs").out
    assert home.upulse("daemon", "restart").code == 0


def test_a_check_and_a_reload_refuse_it(home: CliHome) -> None:
    assert SAID in home.upulse("config", "check", code=1).err
    home.upulse("daemon", "start")
    home.configure(GONE)
    refused = home.upulse("daemon", "reload", code=1).err
    assert SAID in refused
    assert "The old settings stay in force." in refused
    assert home.pid_when_up("demo")


def test_mended_settings_are_without_fault_after_a_restart(home: CliHome) -> None:
    home.upulse("daemon", "start")
    home.configure(sleeper("demo", 86_395))
    home.upulse("daemon", "reload")
    assert home.status()["settings_faults"]  # the socket is still as it was made
    home.upulse("daemon", "restart")
    assert "settings_faults" not in home.status()


def test_while_no_daemon_runs_the_other_settings_hold(home: CliHome) -> None:
    assert SAID in home.status()["settings_faults"][0]
    assert [one["name"] for one in home.status()["processes"]] == ["demo"]
    home.upulse("effect", "add", "run-command", "--key", "k", "--param", 'argv=["true"]')


def test_any_other_fault_still_keeps_it_from_starting(home: CliHome) -> None:
    home.configure(GONE, "[budget]\nactions = 3\n")
    refused = home.upulse("daemon", "start", code=1).err
    assert SAID in refused
    assert "config.toml:5: " in refused
