"""Directories of the home on a file system that does not answer, or fails: survival goes on, and it is said."""

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from pulse_adapters.config.home import Home
from pulse_adapters.git.git_client import GitClient
from pulse_adapters.git.git_files import has_repository
from pulse_adapters.workers.file_threads import FileThreads
from pulse_core.model.errors import PulseError
from tests.acceptance.conftest import Served
from tests.dead_mount import dead
from tests.integration.cli.cli_home import CliHome
from tests.long_form import sampled
from upulse_cli.wiring.backup import backups_of
from upulse_cli.wiring.daemon import LOCK_CHECK

WORDS = "engine does not answer"


def said(home: Path, *words: str) -> str:
    argv = [sys.executable, "-m", "upulse_cli", *words]
    done = subprocess.run(
        [*argv, "--home", str(home)], capture_output=True, text=True, timeout=60, cwd=home, check=False
    )
    return done.stdout + done.stderr


def test_a_backup_of_a_home_whose_engine_does_not_answer_ends_and_says_so(tmp_path: Path) -> None:
    (home := CliHome(tmp_path / "home")).upulse("init", "--no-engine")
    layout = Home(home.path)
    (engine := home.path / "engine").mkdir()
    with dead(engine), pytest.raises(PulseError, match=f"{engine} does not answer"):
        replace(backups_of(layout), patience_s=2.0).make(str(tmp_path / "backup"), lambda *_: None)
    assert not (tmp_path / "backup").exists()


async def test_a_repository_that_does_not_answer_or_fails_has_a_fault(tmp_path: Path) -> None:
    (engine := tmp_path / "engine").mkdir()
    git = GitClient(tmp_path, files=FileThreads(0.1))
    with dead(engine) as fail:
        assert WORDS in await git.fault("0" * 40, thorough=True)
        fail()
        assert "can't be looked at" in await GitClient(tmp_path).fault("0" * 40, thorough=True)
        with pytest.raises(PulseError, match="can't be looked at"):
            has_repository(tmp_path)


@pytest.mark.parametrize("where", sampled(["engine", "staging"], 2))
def test_a_daemon_starts_beside_one_that_does_not_answer(served: Served, where: str) -> None:
    served.configure('[[process]]\nname = "it"\nstart = ["sleep", "1000"]\n')
    (place := served.home.path / where).mkdir()
    with dead(place):
        served.start()
        served.pid_when_up("it")
        if where == "engine":
            file = str(place / "config.toml")
            assert f"{file} does not answer" in said(served.home.path, "config", "check", file)
            assert f"{place / '.git'} does not answer" in said(served.home.path, "engine", "status")
            assert WORDS in said(served.home.path, "doctor")
        assert served.stop() == 0


def test_the_dead_are_restarted_while_the_directory_of_lock_and_socket_does_not_answer(
    served: Served,
) -> None:
    served.configure('[[process]]\nname = "it"\nstart = ["sleep", "9013"]\n')
    served.start()
    first = served.pid_when_up("it")
    with dead(served.home.run) as fail:
        for _ in range(2):
            time.sleep(LOCK_CHECK)  # by then everybody has looked
            os.kill(first, signal.SIGKILL)
            first = served.eventually(partial(another, first), "it is restarted")
            fail()
    served.eventually(served.answers, "the daemon answers")
    assert served.stop() == 0


def another(pid: int) -> int:
    """The process of this command line that is not this one; 0 if there is none."""
    argv = b"\0".join((b"sleep", b"9013", b""))
    found = (one for one in Path("/proc").glob("[0-9]*") if int(one.name) != pid)
    return next((int(one.name) for one in found if read(one / "cmdline") == argv), 0)


def read(path: Path) -> bytes:
    with suppress(OSError):
        return path.read_bytes()
    return b""


@pytest.mark.parametrize("key", sampled(["start", "exec", "env_file", "unix"], 2))
def test_a_daemon_that_is_killed_where_nobody_answers_keeps_no_lock(
    served: Served, tmp_path: Path, key: str
) -> None:
    (place := tmp_path / "place").mkdir()
    named = json.dumps([str(place / "it")] if key in ("start", "exec") else str(place / "it"))
    start = named if key == "start" else '["sleep", "1000"]'
    also = "" if key == "start" else f"{key} = {named}\n"
    served.configure(f'[[process]]\nname = "it"\nstart = {start}\n{also}')
    with dead(place, reads=True):
        served.start()
        served.eventually(
            lambda: "does not answer" in json.dumps(served.status()), "it is said who does not answer"
        )
        served.kill()
        served.start()
        served.kill()
