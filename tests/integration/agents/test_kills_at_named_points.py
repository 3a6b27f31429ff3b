"""A real daemon that is killed at each point of a run, and an agent that is: nothing is done twice, forgotten or lost."""

import os
import signal
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pulse_core.app.append import append
from tests import forked_daemons
from tests.integration.cli import cli_home
from tests.integration.cli.cli_home import CliHome, eventually
from upulse_cli.options import open_home

POINTS = (
    "after:task-executing",
    "before:spawn",
    "after:spawn",
    "before:workspace-made",
    "before:agent-run-ended",
    "after:agent-run-ended",
)
SCRIPT = """
echo "$PULSE_TOKEN" >> {place}/began
if rm {place}/kill 2> {place}/told; then kill -9 $$; fi
echo done > work.txt
echo '{{"type": "result", "subtype": "success", "is_error": false, "result": "done"}}'
"""
SETTINGS = """
[tasks]
attempts = 50
[agents]
failures = 1000
[[agent]]
name = "ada"
kind = "claude"
command = ["sh", "{place}/agent.sh"]
retry = "0s"
"""


@pytest.fixture
def home(tmp_path: Path) -> Iterator[CliHome]:
    """A home without a daemon, with a project, and an agent that kills itself once somebody makes a file `kill`."""
    (tmp_path / "agent.sh").write_text(SCRIPT.format(place=tmp_path))
    script = "git init -q -b main . && git -c user.name=A -c user.email=a@b commit -q --allow-empty -m x"
    (tmp_path / "repository").mkdir()
    subprocess.run(("sh", "-c", script), cwd=tmp_path / "repository", check=True, timeout=60)
    home = CliHome(tmp_path / "home")
    home.upulse("init", "--no-engine")
    home.configure(SETTINGS.format(place=tmp_path))
    home.upulse("project", "add", "app", "--repository", str(tmp_path / "repository"))
    try:
        yield home
    finally:
        home.end_everything()


@pytest.mark.timeout(600)
def test_a_daemon_killed_at_any_point_of_a_run_neither_repeats_nor_forgets_it(
    home: CliHome, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cli_home, "PATIENCE", 240.0)  # an effect that failed is wished again after a minute
    tasks = []
    for point in POINTS:
        append(open_home(str(home.path)), "safe-mode-left", data={"why": "it is the test that kills it"})
        tasks.append(home.upulse("task", "add", "app", point.replace(":", " ")).out.strip())
        words = (point, "1", "--home", str(home.path))
        with open(os.devnull, "wb") as nowhere:
            daemon = forked_daemons.start(words, os.environ, nowhere.fileno(), "tests.campaign.dying_daemon")
        try:
            daemon.wait(60)
        except (
            subprocess.TimeoutExpired
        ):  # the disk hangs for a while, and it waits: any moment will do as well
            daemon.kill()
        assert daemon.wait(60) == -signal.SIGKILL
    home.start_daemon()
    (tmp_path / "kill").touch()
    tasks.append(home.upulse("task", "add", "app", "kill").out.strip())
    eventually(lambda: home.upulse("task", "list", "--json").json == [], "all tasks to be closed")

    began = Counter(tuple(line.split(":")[1:3]) for line in (tmp_path / "began").read_text().splitlines())
    assert max(began.values()) == 1  # of each claim at most one program
    claims = set[tuple[str, str]]()
    for task in tasks:
        shown: dict[str, Any] = home.upulse("task", "show", task, "--json").json
        kinds = [one["kind"] for one in shown["events"]]
        own = {(task, str(one["seq"])) for one in shown["events"] if one["kind"] == "task-executing"}
        assert shown["status"] == "closed"
        assert shown["attempts"] == len(own) == kinds.count("task-failed") + 1
        assert any(one in began for one in own)
        assert (home.path / "workspaces" / task / "work.txt").read_text() == "done\n"
        claims |= own
    assert began.keys() <= claims
    failures = [
        one["data"]["error"] for one in home.upulse("events", "--kind", "task-failed", "--json").lines
    ]
    assert "it was killed by SIGKILL: its output ends without a result" in failures
