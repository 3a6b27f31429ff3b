"""Which process a real daemon guards: what it started until that dies, never a stranger and never a helper of the dead."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

from tests.acceptance.conftest import Served
from tests.integration.cli.cli_home import CliHome
from tests.processes import child_of_test

NO_LIMITS = 'restart = { max = 1000, backoff = "0s", healthy_after = "0s", grace = "30s" }'
SLEEPER = (sys.executable, "-c", "import time; time.sleep(1000)")


def test_a_stranger_that_matches_changes_nothing_and_is_left_alone(served: Served) -> None:
    start = json.dumps([*SLEEPER, "guarded9041"])
    served.configure(
        f'[[process]]\nname = "it"\nstart = {start}\nmatch = "guarded9041"\n{NO_LIMITS}\n'
        '[watch]\nprocess_interval = "100ms"\n'
    )
    served.start()
    first = served.pid_when_up("it")
    with child_of_test(subprocess.Popen([*SLEEPER, "of guarded9041"])) as stranger:
        second = first
        for _ in range(2):
            os.kill(second, signal.SIGKILL)
            second = served.pid_when_up("it", other_than=second)
            assert second != stranger.pid
        told = CliHome(served.home.path).upulse("config", "check")
        assert f"it: process {second} matches; 1 other matches: {stranger.pid}" in told.out + told.err
        served.append("process-stop-requested", "it", expires_us=10**10)
        served.eventually(lambda: not Path(f"/proc/{second}/fd").exists(), "it is ended")
        served.eventually(
            lambda: f"process {stranger.pid} matches" in str(served.process("it")), "it is told"
        )
        assert stranger.poll() is None
        stranger.kill()


def test_a_helper_is_not_taken_for_its_dead_main_process_by_the_next_daemon(served: Served) -> None:
    script = "setsid sleep 9042 & while :; do sleep 0.1; done"
    served.configure(f'[[process]]\nname = "it"\nstart = {json.dumps(["sh", "-c", script])}\n{NO_LIMITS}\n')
    served.start()
    first = served.pid_when_up("it")
    served.kill()
    os.kill(first, signal.SIGKILL)
    served.start()
    second = served.pid_when_up("it", other_than=first)
    line = Path(f"/proc/{second}/cmdline")  # empty while it is executed
    assert b"setsid sleep 9042" in served.eventually(line.read_bytes, "its command line")
