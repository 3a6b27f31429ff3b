"""Pulse's processes change the repository one after the other, and a killed git's locks are in nobody's way."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from pulse_adapters.git.locks import process_holding, repository_lock
from pulse_core.model.errors import PulseError
from tests.integration.git.git_scene import ADA, edited, git, made, write

LEFT = (
    "index.lock",
    "HEAD.lock",
    "refs/heads/staging.lock",
    "worktrees/staging/index.lock",
    "packed-refs.lock",
)


AHEAD = 4_000_000_000
"""Before the clock was set back."""


@pytest.mark.parametrize(("name", "written"), [*((name, 0) for name in LEFT), (LEFT[0], AHEAD)])
def test_a_lock_that_a_killed_git_left_is_taken_away(tmp_path: Path, name: str, written: int) -> None:
    repository = made(tmp_path)
    lock = repository.home / "engine" / ".git" / name
    write(lock, "")
    os.utime(lock, (written, written))
    assert edited(repository)
    assert not lock.exists()


def test_a_lock_of_a_git_that_lives_is_waited_for(tmp_path: Path) -> None:
    repository = made(tmp_path)
    lock = repository.home / "engine" / ".git" / "worktrees" / "staging" / "index.lock"
    write(lock, "")
    os.utime(lock, (0, 0))
    living = subprocess.Popen(
        ["git", "cat-file", "--batch"], cwd=repository.home / "staging", stdin=subprocess.PIPE
    )
    try:
        until = time.monotonic() + 60
        while not process_holding(repository.home, lock):
            assert time.monotonic() < until
        with (
            pytest.raises(
                PulseError,
                match=rf"another git is at work: .*index\.lock is there, held by process {living.pid}",
            ),
            repository_lock(repository.home, 0.1),
        ):
            pass
        assert lock.exists()
    finally:
        living.communicate(timeout=60)
    assert edited(repository)


@pytest.mark.parametrize("told", ["--git-dir=", "GIT_DIR="])
def test_a_git_that_was_sent_here_from_elsewhere_is_respected(tmp_path: Path, told: str) -> None:
    repository = made(tmp_path)
    folder = repository.home / "engine" / ".git"
    option, env = ([f"{told}{folder}"], {}) if told.startswith("--") else ([], {"GIT_DIR": str(folder)})
    words = ["git", *option, "cat-file", "--batch"]
    living = subprocess.Popen(words, cwd="/", env={**os.environ, **env}, stdin=subprocess.PIPE)
    try:
        until = time.monotonic() + 60
        while process_holding(repository.home, folder / "index.lock") != f"process {living.pid}":
            assert time.monotonic() < until
    finally:
        living.communicate(timeout=60)
    assert not process_holding(repository.home, folder / "index.lock")


def test_a_lock_that_another_program_has_open_is_respected(tmp_path: Path) -> None:
    repository = made(tmp_path)
    lock = repository.home / "engine" / ".git" / "index.lock"
    with lock.open("w"):
        os.utime(lock, (0, 0))
        with (
            pytest.raises(PulseError, match=f"held by process {os.getpid()}"),
            repository_lock(repository.home, 0.1),
        ):
            pass
        assert lock.exists()
    assert edited(repository)


def test_what_a_process_has_open_is_not_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It may lie on a file server that does not answer."""
    repository = made(tmp_path)
    far, looked, stat = tmp_path / "far", list[str](), os.stat

    def spied(path: Any, *more: Any, **options: Any) -> os.stat_result:
        looked.append(str(path))
        return stat(path, *more, **options)

    with far.open("w"):
        monkeypatch.setattr(os, "stat", spied)
        assert not process_holding(repository.home, repository.home / "engine" / ".git" / "index.lock")
        monkeypatch.undo()
    assert str(far) not in looked


def test_a_git_somewhere_else_is_not_taken_for_one_here(tmp_path: Path) -> None:
    repository = made(tmp_path)
    git(tmp_path / "template", "init", "--quiet")
    living = subprocess.Popen(
        ["git", "cat-file", "--batch"], cwd=tmp_path / "template", stdin=subprocess.PIPE
    )
    try:
        assert not process_holding(repository.home, repository.home / "engine" / ".git" / "index.lock")
    finally:
        living.communicate(timeout=60)


def test_a_fresh_lock_is_not_taken_away(tmp_path: Path) -> None:
    repository = made(tmp_path)
    lock = repository.home / "engine" / ".git" / "index.lock"
    write(lock, "")
    with pytest.raises(PulseError, match="another git is at work"), repository_lock(repository.home, 0.1):
        pass
    assert lock.exists()


def test_one_waits_for_the_other(tmp_path: Path) -> None:
    repository = made(tmp_path)
    inside, seen = threading.Event(), list[str]()

    def second() -> None:
        inside.set()
        repository.keep_branch("kept", repository.head())
        seen.append("second")

    thread = threading.Thread(target=second)
    with repository_lock(repository.home):
        thread.start()
        inside.wait(60)
        thread.join(0.2)
        seen.append("first")
    thread.join(10)
    assert seen == ["first", "second"]


def test_one_that_waits_too_long_says_for_whom(tmp_path: Path) -> None:
    repository = made(tmp_path)
    with (
        repository_lock(repository.home),
        pytest.raises(PulseError, match="another upulse is changing the engine"),
        repository_lock(repository.home, 0.05),
    ):
        pass


def test_what_a_killed_process_held_is_free(tmp_path: Path) -> None:
    repository = made(tmp_path)
    program = (
        "import sys, time, pathlib\nfrom pulse_adapters.git.locks import repository_lock\n"
        "with repository_lock(pathlib.Path(sys.argv[1])):\n    print('in', flush=True)\n    time.sleep(60)\n"
    )
    argv = [sys.executable, "-c", program, str(repository.home)]
    holder = subprocess.Popen(argv, stdout=subprocess.PIPE)
    assert holder.stdout is not None
    assert holder.stdout.readline() == b"in\n"
    holder.send_signal(signal.SIGKILL)
    holder.communicate(timeout=60)
    assert repository.commit_staging("nothing", ADA) is None
    assert git(repository.home / "engine", "status", "--porcelain") == ""
