"""What a scene of `upulse demo` waits for, and that it leaves nothing running."""

import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from pulse_adapters.config.home import Home
from pulse_core.app.demo import kinds, pid_of
from pulse_core.model.errors import PulseError
from upulse_cli.wiring.demo import kill_started
from upulse_cli.wiring.home import home_context


@pytest.mark.parametrize(
    ("come", "answered"),
    [
        (["process-died"], False),
        (["process-up", "process-died"], False),
        (["process-up", "process-died", "effect", "process-up"], True),
    ],
)
def test_what_answers_comes_after_what_went_wrong(come: Sequence[str], answered: bool) -> None:
    events = [{"kind": kind} for kind in come]
    assert kinds("process-died", "process-up")(events) is answered


def test_a_scene_whose_daemon_is_gone_kills_nobody(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    home.create()
    home.config.write_text('[[process]]\nname = "demo"\nstart = ["sleep", "infinity"]\n')
    with pytest.raises(PulseError, match="the scene found demo unknown: "):
        pid_of(home_context(home))


def test_what_a_scene_has_started_ends_with_it_and_nothing_else(tmp_path: Path) -> None:
    home, other = Home(tmp_path / "home"), Home(tmp_path / "other")
    wait = [sys.executable, "-c", "input()"]
    children = [
        subprocess.Popen(
            wait, stdin=subprocess.PIPE, env={"PULSE_PROCESS": f"demo@{one.path}", "PULSE_EFFECT": "it began"}
        )
        for one in (home, other)
    ]
    with children[0] as mine, children[1] as theirs:
        while not all(Path(f"/proc/{one.pid}/environ").read_bytes() for one in children):
            time.sleep(0.01)  # a process has its environment some time after it was begun
        assert kill_started(home.path) == [mine.pid]
        assert mine.wait(60) == -9
        assert kill_started(home.path) == []
        assert theirs.poll() is None
