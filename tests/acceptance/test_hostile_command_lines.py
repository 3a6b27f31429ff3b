"""Patterns of command lines that a neighbour would make take for ever, and such as an earlier version searched with."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.acceptance.conftest import Served

NO_LIMITS = 'restart = { max = 1000, backoff = "0s", healthy_after = "0s", grace = "0s" }'
PATTERN = "careless9031 (a+)+$"
SLEEPER = (sys.executable, "-c", "import time; time.sleep(1000)")


class Neighbours:
    """Processes whose command lines are made for the pattern."""

    def __init__(self) -> None:
        self._all: list[subprocess.Popen[bytes]] = []

    def come(self) -> None:
        self._all = [subprocess.Popen([*SLEEPER, "careless9031", "a" * (3_000 + n) + "!"]) for n in range(20)]

    def go(self) -> None:
        for one in self._all:
            one.kill()
            one.wait(timeout=60)
        self._all = []

    def live(self) -> bool:
        return all(one.poll() is None for one in self._all)


@pytest.fixture
def neighbours() -> Iterator[Neighbours]:
    some = Neighbours()
    yield some
    some.go()


def guarded(name: str, *words: str, match: str) -> str:
    start = json.dumps([*SLEEPER, *words])
    return f'[[process]]\nname = "{name}"\nstart = {start}\nmatch = {json.dumps(match)}\n{NO_LIMITS}\n'


CARELESS = guarded("careless", "careless9031", "aaaa", match=PATTERN)
OFTEN = '[watch]\nprocess_interval = "100ms"\n'


def test_deaths_are_healed_at_once_beside_neighbours_with_a_command_line_made_for_the_pattern(
    served: Served, neighbours: Neighbours
) -> None:
    neighbours.come()
    served.configure(guarded("good", "good9031", match="good9031") + CARELESS + OFTEN)
    served.start()
    for name in ("good", "careless") * 3:
        pid = served.pid_when_up(name)
        os.kill(pid, signal.SIGKILL)
        assert served.pid_when_up(name, other_than=pid) != pid
    assert neighbours.live()


def test_a_home_with_a_pattern_that_is_not_supported_any_more_starts_and_says_so(served: Served) -> None:
    served.configure(guarded("good", "good9032", match="good9032") + guarded("old", "old", match="old(?!er)"))
    served.start()
    served.pid_when_up("good")
    served.eventually(lambda: served.process("old")["pid"] is None, "nobody is started in doubt")
    assert "'old(?!er)' uses a lookahead" in str(served.status()["settings_faults"])
