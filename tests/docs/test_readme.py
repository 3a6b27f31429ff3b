"""The first minute of a new user: `make run` in one terminal, the rest of the README in another."""

import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.docs.docs_console import ROOT, Command, commands
from tests.docs.docs_shell import PATIENCE, Shell
from tests.long_form import sample
from tests.processes import child_of_test

STAMP = ".venv/run.stamp"


@dataclass(frozen=True)
class Story:
    """Both terminals."""

    shell: Shell
    run: subprocess.Popen[bytes]
    said: Path


def make_run() -> list[str]:
    """`make run`; a checkout that is set up already isn't set up again."""
    return ["make", "run", *(["-o", STAMP] if (ROOT / ".venv/bin/upulse").exists() else [])]


@pytest.fixture
def story(tmp_path: Path) -> Iterator[Story]:
    shell, said = Shell(tmp_path, cwd=ROOT, own_processes=False), tmp_path / "said"
    with said.open("wb") as output:
        run = subprocess.Popen(
            make_run(), cwd=ROOT, env=shell.environment, stdout=output, stderr=output, start_new_session=True
        )
    try:
        shell.follow(Command("upulse status", ("demo up …",)))
        yield Story(shell, run, said)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(run.pid, signal.SIGKILL)
        run.wait(timeout=60)
        shell.close()


def test_the_readme_tells_the_truth(story: Story) -> None:
    for command in commands(ROOT / "README.md"):
        story.shell.follow(command)


def test_a_killed_demo_process_is_back_and_the_log_says_why_and_ctrl_c_ends_the_daemon_alone(
    story: Story,
) -> None:
    demo = status(story.shell)["processes"][0]
    os.kill(demo["pid"], signal.SIGKILL)
    story.shell.follow(Command("upulse status", ("demo up … 1 process …",)))
    again = status(story.shell)["processes"][0]
    assert (again["state"], again["restarts"]) == ("up", 1)
    assert again["pid"] != demo["pid"]
    told = json.loads(story.shell.type("upulse why --json")[1])
    assert told["effect"]["params"]["instead_of"]["pid"] == demo["pid"]
    assert told["outcome"]["data"]["result"]["pid"] == again["pid"]
    assert told["tick"]["layers"]
    assert told["samples"]

    os.killpg(story.run.pid, signal.SIGINT)
    # make ends by the interrupt itself, whatever its command says: what counts is that the daemon drained.
    assert story.run.wait(timeout=PATIENCE) in (0, 2, 130, -signal.SIGINT)
    assert status(story.shell)["daemon"]["state"] == "stopped"
    assert "asked to stop" in story.shell.type("upulse events -n 1")[1]
    assert "Traceback" not in story.said.read_text()
    os.kill(again["pid"], 0)


def test_make_run_on_a_terminal_says_when_it_is_ready_and_what_ctrl_c_left_running(tmp_path: Path) -> None:
    shell, (ours, terminal) = Shell(tmp_path, cwd=ROOT), os.openpty()
    run = subprocess.Popen(make_run(), cwd=ROOT, env=shell.environment, start_new_session=True,
                           stdin=terminal, stdout=terminal, stderr=terminal)  # fmt: skip
    os.close(terminal)
    said = b""
    try:
        with child_of_test(run):
            while not (b"ready, now try" in said and b"process-up" in said):
                assert select.select([ours], [], [], PATIENCE)[0], said
                said += os.read(ours, 4096)
            os.killpg(run.pid, signal.SIGINT)  # as the terminal does to make and to the daemon
            with suppress(OSError):  # the other end is closed
                while select.select([ours], [], [], PATIENCE)[0] and (more := os.read(ours, 4096)):
                    said += more
            run.wait(timeout=PATIENCE)
        assert b"Left running, unguarded: demo (process " in said
        assert b"***" not in said
    finally:
        os.close(ours)
        shell.close()


def test_a_venv_without_pip_is_made_anew(tmp_path: Path) -> None:
    """As Debian without python3-venv leaves it."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/python").symlink_to("/bin/false")
    command = ["make", "-n", "setup", f"VENV={tmp_path}", "PYTHON=python3"]
    planned = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=True).stdout
    (made,) = [line for line in planned.splitlines() if "venv --clear" in line]
    if sample(False, True):
        done = subprocess.run(["sh", "-c", made], cwd=ROOT, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        subprocess.run([tmp_path / "bin/python", "-m", "pip", "--version"], check=True, timeout=60)


def test_ctrl_c_is_a_good_end_of_a_daemon_in_the_foreground(tmp_path: Path) -> None:
    shell = Shell(tmp_path, own_processes=False)
    try:
        assert shell.type("upulse init --demo --no-engine")[0] == 0
        command = ["upulse", "daemon", "start", "--foreground"]
        with child_of_test(
            subprocess.Popen(command, env=shell.environment, stderr=subprocess.DEVNULL)
        ) as daemon:
            shell.follow(Command("upulse status", ("demo up …",)))
            daemon.send_signal(signal.SIGINT)
            assert daemon.wait(timeout=PATIENCE) == 0
    finally:
        shell.close()


def test_ctrl_c_can_be_tested_also_where_it_is_ignored() -> None:
    """As by `nohup make test &` in a script, whose children would be deaf to what they are tested with."""
    ends = "print(*(run(['sh', '-c', f'kill -{name} $$']).returncode for name in ('INT', 'HUP')))"
    before = {number: signal.signal(number, signal.SIG_IGN) for number in (signal.SIGINT, signal.SIGHUP)}
    try:
        argv = [sys.executable, "-c", f"from subprocess import run; import tests.conftest; {ends}"]
        done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, timeout=60)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    assert done.stdout.split() == [str(-signal.SIGINT), str(-signal.SIGHUP)], done.stderr


def status(shell: Shell) -> Any:
    """What `upulse status --json` says."""
    code, output = shell.type("upulse status --json")
    assert code == 0, output
    return json.loads(output)
