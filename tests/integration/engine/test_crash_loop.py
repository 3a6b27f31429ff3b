"""A real daemon that is killed by loading its engine, and started again and again, as systemd would."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.cli.cli_home import CliHome, eventually, sleeper
from tests.integration.engine.engine_home import new_home
from tests.processes import child_of_test


class RestartedDaemon:
    """A daemon that dies before it loads an engine, and is started again until it is asked to stop."""

    def __init__(self, home: CliHome) -> None:
        step = ("-m", "tests.integration.engine.dying", "lay-out", "before")
        self._argv = (sys.executable, *step, "serve", "--home", str(home.path))
        self.ends: list[int] = []
        self._stopping = threading.Event()
        self._loop = threading.Thread(target=self._run)

    def __enter__(self) -> "RestartedDaemon":
        self._loop.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._loop.join(60)

    def _run(self) -> None:
        while not self._stopping.is_set() and 0 not in self.ends:
            daemon = subprocess.Popen(self._argv, stderr=subprocess.DEVNULL)
            while daemon.poll() is None:
                if self._stopping.wait(0.02):
                    daemon.kill()
            self.ends.append(daemon.wait(60))


@pytest.fixture
def home(tmp_path: Path) -> Iterator[CliHome]:
    """A home with an engine, that guards one process."""
    made = new_home(tmp_path / "home", config=sleeper("demo", 86_395))
    try:
        yield made
    finally:
        made.end_everything()


def safe_mode(home: CliHome) -> list[str]:
    return list((home.status().get("safe_mode") or {}).get("left_out", []))


def is_up(home: CliHome) -> bool:
    return bool(home.status()["daemon"]["state"] == "running")


def test_a_daemon_that_its_engine_kills_stays_up_without_it_and_guards_until_it_is_wanted_whole(
    home: CliHome,
) -> None:
    with RestartedDaemon(home) as daemon:
        eventually(lambda: len(daemon.ends) > 0, "the first crash")
        eventually(lambda: len(daemon.ends) > 1, "the second crash")
        eventually(lambda: len(daemon.ends) > 2, "the third crash")
        eventually(lambda: is_up(home) and safe_mode(home) == ["engine"], "safe mode")
        assert daemon.ends == [-signal.SIGKILL] * 3
        demo = home.pid_when_up("demo")
        os.kill(demo, signal.SIGKILL)
        home.pid_when_up("demo", other_than=demo)
        said = home.upulse("status").out
        assert "SAFE MODE since" in said
        assert "without engine, after 3 crashes; leave it: upulse daemon restart --normal" in said
        assert "engine    left out by safe mode" in said
        assert "safe mode" in home.upulse("doctor", "--json").out
        events = home.upulse("events", "--kind", "safe-mode-entered").out
        assert "without engine, after 3 crashes" in events
        home.upulse("daemon", "restart", "--normal")
        eventually(lambda: daemon.ends[3:] == [0], "its orderly end")
    eventually(lambda: home.status()["engine"]["runs"], "the engine to run")
    assert not safe_mode(home)
    assert "SAFE MODE" not in home.upulse("status").out


def test_an_engine_is_disabled_while_its_daemon_is_killed_at_each_start(home: CliHome) -> None:
    with RestartedDaemon(home) as daemon:
        eventually(lambda: daemon.ends, "the first end")
        home.upulse("engine", "disable", "--why", "it kills the daemon")
        eventually(lambda: is_up(home) and home.status()["engine"]["disabled"], "a daemon that stays up")
        assert not home.status()["engine"]["runs"]
        found = home.upulse("doctor", "--json").json["findings"]
        assert "it kills the daemon" in next(
            one["words"] for one in found if one["remedy"] == "upulse engine enable"
        )
        assert "it kills the daemon" in home.upulse("engine", "status").out
        assert "engine    disabled by" in home.upulse("status").out


CALLS_EXIT = """
import sys
from pulse_core.tick.rule_folds import RuleFolds
from upulse_cli import serve

async def whole(*_):
    sys.exit(3)

RuleFolds.whole = whole
sys.exit(serve.main())
"""


def test_a_daemon_whose_code_calls_exit_ends_and_holds_no_lock(home: CliHome) -> None:
    argv = (sys.executable, "-c", CALLS_EXIT, "--home", str(home.path))
    with child_of_test(subprocess.Popen(argv, stderr=subprocess.DEVNULL)) as daemon:
        assert daemon.wait(30) > 0
