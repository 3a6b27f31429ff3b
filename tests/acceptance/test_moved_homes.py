"""A home is moved, copied or restored elsewhere while what it guards lives: nothing is doubled, left, or another's."""

import json
import os
import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pulse_adapters.ipc.lock import holder
from pulse_adapters.workers.control_group import LIFE
from pulse_adapters.workers.proc import command_line, live_processes
from tests.acceptance.conftest import Served
from tests.control_groups import skip_without_groups
from upulse_cli.__main__ import main

ALONE, HELPED, HELPER = (f"{seconds}.{os.getpid()}" for seconds in (9111, 9112, 9113))
"""How long they sleep, by which they are found: other runs of the tests have others."""
RESTART = 'restart = { max = 1000, backoff = "0s", healthy_after = "0s", grace = "1s" }'
VICTIM = f'[[process]]\nname = "it"\nstart = ["sleep", "{ALONE}"]\n{RESTART}\n'
START = f'start = ["sh", "-c", "(setsid sleep {HELPER} &); exec sleep {HELPED}"]'
WITH_HELPER = f'[[process]]\nname = "it"\n{START}\n{RESTART}\n'


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Callable[[str], Served]]:
    homes = dict[str, Served]()
    try:
        yield lambda name: homes.setdefault(name, Served(tmp_path / name))
    finally:
        for one in homes.values():
            one.close()


def sleepers(*seconds: str) -> list[int]:
    """All that sleep so long, whoever started them, and whatever for."""
    return sorted(one.pid for one in live_processes() if command_line(one.pid)[-1:] in [[s] for s in seconds])


def are_grouped(pids: list[int]) -> bool:
    """Whether these are there, in groups of lives."""
    return bool(pids) and all(f"/{LIFE}" in Path(f"/proc/{pid}/cgroup").read_text() for pid in pids)


def test_a_home_that_was_moved_and_one_made_in_its_place_have_each_its_own(
    serve: Callable[[str], Served],
) -> None:
    one, two = serve("home"), serve("other")
    one.configure(VICTIM)
    skip_without_groups()  # who was started while nothing was recorded is known by its group
    one.start()
    first, place = one.pid_when_up("it"), one.home.path
    place.rename(two.home.path)
    one.home, two.home = two.home, one.home
    one.said = one.home.path / "daemon.out"
    two.said = two.home.path / "daemon.out"
    os.kill(first, signal.SIGKILL)
    second = one.pid_when_up("it", other_than=first)  # its log misses this one
    one.eventually(lambda: are_grouped([second]), "it is in its group")
    two.configure(VICTIM)
    two.start()
    third = two.pid_when_up("it")
    assert third != second
    for served in (one, two):
        held = holder(served.home.lock)
        assert held
        assert served.daemon
        assert held.pid == served.daemon.pid == served.status()["daemon"]["pid"]
    assert one.stop() == 0
    two.kill()
    one.start()
    assert one.pid_when_up("it") == second
    two.start()
    assert two.pid_when_up("it") == third
    assert sleepers(ALONE) == sorted([second, third])


def test_a_copy_of_a_home_whose_daemon_runs_says_so_and_that_nothing_has_died(
    serve: Callable[[str], Served], capsys: pytest.CaptureFixture[str]
) -> None:
    original, copy = serve("original"), serve("copy")
    original.configure("")
    daemon = original.start().status()["daemon"]
    shutil.copytree(original.home.path, copy.home.path, ignore=shutil.ignore_patterns("run"))
    assert main(["status", "--json", "--home", str(copy.home.path)]) == 0
    told = json.loads(capsys.readouterr().out)["daemon"]
    assert (told["state"], "died" in told) == ("stopped", False)
    assert told["copy_of"] == {"pid": daemon["pid"], "home": str(original.home.path)}
    original.kill()
    assert main(["status", "--json", "--home", str(copy.home.path)]) == 0
    assert json.loads(capsys.readouterr().out)["daemon"]["died"]


def test_a_copy_goes_on_with_what_the_original_has_begun_and_ends_what_that_has_left(
    serve: Callable[[str], Served], tmp_path: Path
) -> None:
    original, copy, backup = serve("original"), serve("copy"), serve("backup")
    original.configure(WITH_HELPER)
    skip_without_groups()
    original.start()
    first = original.pid_when_up("it")
    original.eventually(lambda: len(sleepers(HELPED, HELPER)) == 2, "it runs")
    for other in (copy, backup):
        shutil.copytree(original.home.path, other.home.path, ignore=shutil.ignore_patterns("run"))
        other.said = tmp_path / f"{other.home.path.name}.out"
    with pytest.raises(
        AssertionError, match=f"{copy.home.path} is a copy of {original.home.path} whose daemon"
    ):
        copy.start()
    os.kill(first, signal.SIGKILL)
    second = original.pid_when_up("it", other_than=first)  # the copies' logs miss this one
    original.eventually(lambda: are_grouped(sleepers(HELPED, HELPER)), "it is in its group")
    original.kill()
    shutil.rmtree(original.home.path)
    os.kill(second, signal.SIGKILL)
    left = sleepers(HELPER)
    third = copy.start().pid_when_up("it")
    copy.eventually(lambda: len(sleepers(HELPED, HELPER)) == 2, "what was left is ended")
    assert not set(left).intersection(sleepers(HELPER))
    copy.eventually(lambda: are_grouped(sleepers(HELPED, HELPER)), "it is in its group")
    assert copy.stop() == 0
    assert backup.start().pid_when_up("it") == third
    assert len(sleepers(HELPED, HELPER)) == 2
