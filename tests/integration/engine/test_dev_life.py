"""`upulse dev` as a process: how it ends, and what it does beside a daemon."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.integration.cli.cli_home import ALLOW, CliHome, eventually
from tests.integration.engine.engine_home import CALM, WISHING, new_home, save
from tests.long_form import sampled

ARGV = (sys.executable, "-m", "upulse_cli", "dev", "--json")


class Developing:
    """`upulse dev` and what it says."""

    def __init__(self, home: CliHome, *words: str) -> None:
        argv = (*ARGV, *words, "--home", str(home.path))
        self.child = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def next(self, what: str) -> dict[str, Any]:
        assert self.child.stdout is not None
        for line in self.child.stdout:
            if (news := json.loads(line))["what"] == what:
                return dict(news)
        raise AssertionError(f"it ended without a {what}: {self.child.communicate(timeout=60)[1]}")

    def hosts(self) -> list[int]:
        """Its children."""
        children = Path(f"/proc/{self.child.pid}/task/{self.child.pid}/children")
        return [int(word) for word in children.read_text().split()]

    def ended(self, by: signal.Signals) -> tuple[int, str]:
        self.child.send_signal(by)
        _, said = self.child.communicate(timeout=60)
        return self.child.returncode, said


@contextmanager
def developing(home: CliHome, *words: str) -> Iterator[Developing]:
    one = Developing(home, *words)
    try:
        yield one
    finally:
        if one.child.poll() is None:
            one.child.kill()
            one.child.communicate(timeout=60)


def is_alive(pid: int) -> bool:
    """Whether a process runs; one that nobody has reaped does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


@pytest.mark.parametrize(("by", "code"), sampled([(signal.SIGINT, 130), (signal.SIGTERM, 0)], 2))
def test_it_ends_cleanly_and_takes_its_hosts_along(tmp_path: Path, by: signal.Signals, code: int) -> None:
    home = new_home(tmp_path / "home", CALM)
    with developing(home) as dev:
        dev.next("tick")
        hosts = dev.hosts()
        assert hosts
        ended, said = dev.ended(by)
        assert ended == code
        assert "Traceback" not in said
        eventually(lambda: not any(map(is_alive, hosts)), "the hosts to end")


@pytest.fixture
def served(tmp_path: Path) -> Iterator[CliHome]:
    """A home whose daemon runs."""
    home = new_home(tmp_path / "home", CALM, f"[daemon]\ntick_ms = 200\n{ALLOW}")
    home.start_daemon()
    try:
        yield home
    finally:
        os.kill(home.status()["daemon"]["pid"], signal.SIGKILL)


def effects(home: CliHome) -> list[dict[str, Any]]:
    return home.upulse("events", "--kind", "effect", "--json").lines


def test_beside_a_daemon_it_shows_the_daemons_ticks_and_does_nothing(served: CliHome) -> None:
    save(served, WISHING)
    with developing(served) as dev:
        assert "beside the daemon" in dev.next("remark")["words"]
        first, second, third = (dev.next("tick") for _ in range(3))
        assert first["again"]
        assert third["tick"] == second["tick"] + 1 > first["tick"] + 1
        assert [one["state"] for one in third["effects"]] == ["new"]
    assert not effects(served)


def test_what_is_executed_is_a_persons_wish_and_made_once(served: CliHome) -> None:
    save(served, WISHING)
    with developing(served, "--execute") as dev:
        for _ in range(4):
            dev.next("tick")
    (effect,) = effects(served)
    assert effect["actor"] != "pulse"
    assert effect["subject"] == "my:wish"
    assert effect["data"]["reason"] == "wishing in staging: it is time"
    eventually(lambda: served.upulse("events", "--kind", "effect-acked", "--json").lines, "it to be done")


def test_when_the_daemon_goes_it_goes_on_alone_and_back_when_one_comes(served: CliHome) -> None:
    with developing(served) as dev:
        dev.next("tick")
        served.upulse("daemon", "stop")
        assert "no daemon runs" in dev.next("remark")["words"]
        dev.next("tick")
        served.start_daemon()
        assert "beside the daemon" in dev.next("remark")["words"]
        dev.next("tick")
