"""Byte code is left unwritten where only a part of it would be kept: Python takes a cut file for a whole one ever after."""

import subprocess
import sys
from pathlib import Path

import pytest

from pulse_adapters.workers.host_process import host_environment
from pulse_adapters.workers.worker import module_program

LIMITED = """
import contextlib, os, resource, runpy, sys  # what Python itself reads before the command is asked
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
os.execv(sys.argv[1], sys.argv[1:])
"""


def test_a_command_under_a_limit_of_file_size_leaves_nothing_that_the_next_one_can_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPYCACHEPREFIX", str(tmp_path))
    monkeypatch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
    command = [sys.executable, "-m", "upulse_cli", "--help"]
    for argv in ([sys.executable, "-c", LIMITED, *command], command):
        ran = subprocess.run(argv, capture_output=True, text=True, timeout=60)
        assert ran.returncode == 0, ran.stderr
    assert list(tmp_path.rglob("upulse_cli/app.*.pyc"))  # with room, it is written


def test_programs_that_one_starts_which_writes_none_are_told_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
    for is_left in (False, True):
        monkeypatch.setattr(sys, "dont_write_bytecode", is_left)
        for environment in (None, host_environment({})):
            given = module_program("some.module", env=environment).env
            assert ("PYTHONDONTWRITEBYTECODE" in given) == is_left
