"""The system gives a running daemon nothing more: no descriptors, no threads. Nobody is taken for dead, and it goes on."""

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path

import pytest

from pulse_adapters.sqlite.event_reader import SqliteEventReader
from pulse_core.ports.readers import EventQuery
from tests.acceptance.conftest import Served
from tests.dead_mount import dead
from tests.descriptors import no_descriptors
from tests.long_form import sampled

GUARDED = "".join(
    f'[[process]]\nname = "{name}"\nstart = ["sleep", "86400"]\n'
    'restart = { max = 1000, backoff = "0s", healthy_after = "0s" }\n'
    for name in ("first", "second", "third")
)
SHORT_FOR = 3.0
"""Seconds without; longer than any look of the daemon's at its processes."""
PIDS = Path("/sys/fs/cgroup/pids")


def deaths(served: Served) -> list[str]:
    with SqliteEventReader(served.home.path) as log:
        found = list(log.events(EventQuery(kinds=("process-died",))))
    return [one.subject for one in found if not one.spelled()["data"].get("intended")]


@contextmanager
def no_threads(pid: int) -> Iterator[None]:
    """A group in which this process can have neither threads nor children more than it has."""
    group = PIDS / f"pulse-test-{pid}"
    try:
        group.mkdir()
    except OSError:
        pytest.skip("no hierarchy of the pids controller that may be used")
    before = next(
        PIDS / line.rpartition(":")[2].lstrip("/")
        for line in Path(f"/proc/{pid}/cgroup").read_text().splitlines()
        if ":pids:" in line
    )
    (group / "cgroup.procs").write_text(str(pid))
    (group / "pids.max").write_text("1")
    try:
        yield
    finally:
        (group / "pids.max").write_text("max")
        for line in (group / "cgroup.procs").read_text().split():
            with suppress(OSError):
                (before / "cgroup.procs").write_text(line)
        with suppress(OSError):
            group.rmdir()


@pytest.mark.parametrize("shortage", sampled([no_descriptors, no_threads], 2))
def test_a_daemon_that_gets_nothing_more_takes_nobody_for_dead_and_restarts_who_is_once_it_can(
    served: Served, tmp_path: Path, shortage: Callable[[int], AbstractContextManager[None]]
) -> None:
    served.configure(GUARDED)
    (elsewhere := tmp_path / "mounted").mkdir()
    with dead(elsewhere):  # where one is mounted, each file system is asked in a thread of its own
        served.start()
        scene(served, shortage)


def scene(served: Served, shortage: Callable[[int], AbstractContextManager[None]]) -> None:
    first, second, third = map(served.pid_when_up, ("first", "second", "third"))
    assert served.daemon is not None
    with shortage(served.daemon.pid):
        os.kill(first, signal.SIGKILL)
        time.sleep(SHORT_FOR)
        assert served.daemon.poll() is None
    again = served.pid_when_up("first", other_than=first)
    os.kill(again, signal.SIGKILL)
    served.pid_when_up("first", other_than=again)
    assert (served.pid_when_up("second"), served.pid_when_up("third")) == (second, third)
    assert set(deaths(served)) == {"first"}
