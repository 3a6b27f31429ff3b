"""The doctor beside a daemon on ground that is bad: no room, and a disk that is gone at the next boot."""

import json
import subprocess
import sys
from pathlib import Path

from tests.acceptance.conftest import Served
from tests.acceptance.test_backups import fill
from tests.small_disk import small_disk


def findings(home: Path, code: int) -> dict[str, dict[str, str]]:
    argv = [sys.executable, "-m", "upulse_cli", "doctor", "--json", "--home", str(home)]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == code, done.stderr
    return {one["name"]: one for one in json.loads(done.stdout)["findings"]}


def test_a_full_disk_is_said_and_the_doctor_needs_no_room(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk with a space", "16m", is_demanded=True) as disk:
        served = Served(disk / "home")
        try:
            served.configure("# nothing\n")
            served.start()
            fill(disk)
            found = findings(served.home.path, code=1)
            assert found["disk"]["level"] == "fail"
            assert "make room" in found["disk"]["remedy"]
            assert (found["file system"]["level"], "tmpfs" in found["file system"]["words"]) == ("warn", True)
            assert found["log"]["level"] == "ok"
            assert found["daemon"]["level"] == "ok"
        finally:
            served.close()
