"""A neighbour whose command line is made for a careless pattern: the daemon goes on, and takes nobody for dead."""

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
            one.wait(timeout=30)
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


def said(served: Served) -> bool:
    """Whether the daemon has told that the pattern takes too long."""
    return f"{PATTERN!r} takes too long" in (served.home.path / "daemon.out").read_text()


CARELESS = guarded("careless", "careless9031", "aaaa", match=PATTERN)
OFTEN = '[watch]\nprocess_interval = "100ms"\n'


def test_others_are_healed_while_a_search_takes_too_long(served: Served, neighbours: Neighbours) -> None:
    neighbours.come()
    served.configure(guarded("good", "good9031", match="good9031") + CARELESS + OFTEN)
    served.start()
    served.eventually(lambda: said(served), "the pattern is told")
    for _ in range(5):
        pid = served.pid_when_up("good")
        os.kill(pid, signal.SIGKILL)
        assert served.pid_when_up("good", other_than=pid) != pid
    assert served.process("careless")["pid"] is None
    assert neighbours.live()


def test_a_proven_death_starts_nothing_until_it_is_known_that_no_other_one_is_there(
    served: Served, neighbours: Neighbours
) -> None:
    served.configure(CARELESS + OFTEN)
    served.start()
    first = served.pid_when_up("careless")
    before = served.process("careless")["restarts"]
    neighbours.come()
    os.kill(first, signal.SIGKILL)
    served.eventually(lambda: served.status()["effects"]["failed"], "a restart is refused")
    assert served.process("careless")["restarts"] == before
    assert neighbours.live()
    neighbours.go()
    assert served.pid_when_up("careless", other_than=first)
