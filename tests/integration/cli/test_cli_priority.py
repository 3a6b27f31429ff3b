"""The daemon's priority, which nothing has that it starts."""

import os
import sys
from pathlib import Path

import psutil
import pytest

from pulse_adapters.workers.priority import NICENESS, USUAL
from tests.integration.cli.cli_home import CliHome, eventually

PYTHON = sys.executable
FORKS = "import os, time; os.fork(); time.sleep(1000)"
SETTINGS = f"""
[[process]]
name = "plain"
start = ["{PYTHON}", "-c", "{FORKS}"]

[[process]]
name = "in-a-folder"
start = ["{PYTHON}", "-c", "{FORKS}"]
cwd = "/"

[[process]]
name = "nice"
start = ["{PYTHON}", "-c", "{FORKS}"]
nice = 3

[[process]]
name = "as-the-daemon"
start = ["{PYTHON}", "-c", "{FORKS}"]
nice = {NICENESS}

[[process]]
name = "of-nobody"
start = ["/bin/sleep", "1000"]
user = "nobody"
exec = ["/bin/sleep", "100"]
timeout = "100s"
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may raise a priority")
def test_the_daemon_comes_before_others_and_nothing_that_it_starts_does(quiet: CliHome) -> None:
    if os.getpriority(os.PRIO_PROCESS, 0) != USUAL:
        pytest.skip("these tests were given a niceness, which a daemon of theirs keeps")
    quiet.configure(SETTINGS)
    quiet.upulse("init")
    quiet.upulse("daemon", "start")  # which begins a session
    daemon = psutil.Process(quiet.status()["daemon"]["pid"])
    try:
        look_at(daemon, quiet)
    finally:
        for one in (*daemon.children(recursive=True), daemon):
            one.kill()


def look_at(daemon: psutil.Process, quiet: CliHome) -> None:
    if daemon.nice() == 0:
        pytest.skip("root may not raise a priority here")
    assert {os.getpriority(os.PRIO_PROCESS, thread.id) for thread in daemon.threads()} == {NICENESS}
    pids = {name: quiet.pid_when_up(name) for name in ("plain", "in-a-folder", "nice", "as-the-daemon")}

    def trees() -> dict[str, list[int]] | None:
        found = {
            name: [pid, *(one.pid for one in psutil.Process(pid).children())] for name, pid in pids.items()
        }
        return found if all(len(some) == 2 for some in found.values()) else None

    of = {
        name: {os.getpriority(os.PRIO_PROCESS, pid) for pid in some}
        for name, some in eventually(trees, "all to have forked").items()
    }
    assert of == {"plain": {0}, "in-a-folder": {0}, "nice": {3}, "as-the-daemon": {NICENESS}}
    kept = {one for some in eventually(trees, "their trees").values() for one in some}
    others = [one for one in daemon.children(recursive=True) if one.pid not in kept]
    assert len(others) >= 3  # the rule host, the program of nobody, and its probe
    assert {one.pid: one.nice() for one in others if one.nice() < 0} == {}
    if (grouped := session_niceness(daemon.pid)) is not None:
        assert grouped == NICENESS
        own = [
            pid for pid in (*kept, *(one.pid for one in others)) if os.getsid(pid) != os.getsid(daemon.pid)
        ]
        assert len(own) >= len(kept) + 3
        assert {pid: session_niceness(pid) for pid in own} == dict.fromkeys(own, 0)


def session_niceness(pid: int) -> int | None:
    """That of its session, as the scheduler sees it; None where the kernel does not group by sessions."""
    try:
        return int(Path(f"/proc/{pid}/autogroup").read_text().split()[-1])
    except FileNotFoundError:
        return None
