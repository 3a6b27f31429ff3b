"""Every scene of `upulse demo` is played as a user would: it answers, and leaves nothing behind."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pulse_core.app.demo import SCENES
from tests.long_form import sample
from upulse_cli.__main__ import main


def demo(*words: str, place: Path) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "upulse_cli", "demo", *words]
    env = {**os.environ, "TMPDIR": str(place)}
    return subprocess.run(command, capture_output=True, text=True, timeout=90, env=env)


HELPED = sorted(name for name in SCENES if name not in ("flap", "log"))


@pytest.mark.parametrize("name", sample(["crash"], HELPED))  # the page's test plays another one
def test_a_scene_shows_what_went_wrong_and_that_it_helped(name: str, tmp_path: Path) -> None:
    said = demo(name, place=tmp_path)
    assert said.returncode == 0, said.stderr
    assert "recovered" in said.stdout
    assert "what goes wrong: kill" in said.stderr
    assert list(tmp_path.iterdir()) == []


def test_flapping_is_told_once(tmp_path: Path) -> None:
    said = demo("flap", place=tmp_path)
    assert said.stdout.count("notify only logged") == 1
    assert "not recovered yet" in said.stdout
    assert list(tmp_path.iterdir()) == []


def test_an_error_in_a_log_is_noticed_and_told(tmp_path: Path) -> None:
    said = demo("log", place=tmp_path)
    assert said.returncode == 0, said.stderr
    assert "the model does not answer" in said.stdout
    assert "notify" in said.stdout


def test_the_scenes_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo"]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == list(SCENES)


def test_an_unknown_scene_is_answered_with_the_nearest_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "kil"]) == 1
    assert "did you mean 'kill'" in capsys.readouterr().err
