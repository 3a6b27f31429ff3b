"""The real logrotate, where it is installed, in the ways in which it is configured."""

import os
import shutil
import subprocess
from itertools import islice
from pathlib import Path

import pytest

from tests.integration.logs.logs_scene import Following, numbered, write
from tests.long_form import sampled

LOGROTATE = shutil.which("logrotate", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
WAYS = {
    "rename": "create",
    "rename without create": "nocreate",
    "copytruncate": "copytruncate",
    "dates": "create\ndateext\ndateformat -%Y%m%d-TURN",
    "dates before the extension": "create\ndateext\ndateformat -%Y%m%d-TURN\nextension .log",
    "numbers before the extension": "create\nextension .log",
    "copytruncate with dates": "copytruncate\ndateext\ndateformat -%Y%m%d-TURN",
    "compression a turn later": "create\ncompress\ndelaycompress",
    "keeping none": "rotate 0\ncreate",
    "a copy of what was renamed, which is deleted": "renamecopy\ncreate",
}
pytestmark = pytest.mark.skipif(
    LOGROTATE is None, reason="logrotate is not installed; to have it tested: apt-get install logrotate"
)


class Rotation:
    """A log that logrotate rotates when it is told to."""

    def __init__(self, home: Path, way: str) -> None:
        self.log, self.state, self.config = home / "logs" / "app.log", home / "state", home / "rotate.conf"
        self.log.parent.mkdir()
        self.way, self.turn = way, 100

    def __call__(self) -> None:
        self.turn += 1
        manner = WAYS[self.way].replace("TURN", str(self.turn))
        self.config.write_text(f"{self.log} {{\nrotate 20\n{manner}\n}}\n")
        if self.log.exists():
            argv = [str(LOGROTATE), "--force", "--state", str(self.state), str(self.config)]
            done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=60)
            assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("pattern", sampled(["app.log", "*.log", "app*"], 3))
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("down", [False, True], ids=["followed", "down"])
def test_each_line_comes_once(tmp_path: Path, way: str, pattern: str, down: bool) -> None:
    rotate, lines = Rotation(tmp_path, way), numbered()
    expected = list(islice(lines, 5))
    write(rotate.log, *expected)
    following = Following(rotate.log.parent / pattern, known=True)
    following.drain()
    for _ in range(6):
        expected += (before := list(islice(lines, 30)))
        write(rotate.log, *before)
        if way == "keeping none" or way.startswith("compression"):
            following.drain()  # what is deleted or packed before it was read is lost
        rotate()
        expected += (after := list(islice(lines, 30)))
        write(rotate.log, *after)
        if down:
            following.restart()
        following.drain()
    following.close()
    assert [line for _, line in following.lines] == expected
