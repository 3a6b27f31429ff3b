"""The engine's directory on a file system that does not answer, or fails: survival goes on, and it is said."""

import subprocess
import sys
from pathlib import Path

import pytest

from pulse_adapters.git.git_client import GitClient
from pulse_adapters.git.git_files import has_repository
from pulse_adapters.workers.file_threads import FileThreads
from pulse_core.model.errors import PulseError
from tests.acceptance.conftest import Served
from tests.dead_mount import dead

WORDS = "engine does not answer"


def said(home: Path, *words: str) -> str:
    argv = [sys.executable, "-m", "upulse_cli", *words]
    done = subprocess.run(
        [*argv, "--home", str(home)], capture_output=True, text=True, timeout=60, cwd=home, check=False
    )
    return done.stdout + done.stderr


async def test_a_repository_that_does_not_answer_or_fails_has_a_fault(tmp_path: Path) -> None:
    (engine := tmp_path / "engine").mkdir()
    git = GitClient(tmp_path, files=FileThreads(0.1))
    with dead(engine) as fail:
        assert WORDS in await git.fault("0" * 40, thorough=True)
        fail()
        assert "can't be looked at" in await GitClient(tmp_path).fault("0" * 40, thorough=True)
        with pytest.raises(PulseError, match="can't be looked at"):
            has_repository(tmp_path)


@pytest.mark.parametrize("where", ["engine", "staging"])
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
