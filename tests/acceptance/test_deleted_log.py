"""events.db is deleted under a running daemon: the dead are restarted, it is said, and nothing is lost."""

import os
import signal
import time

import pytest

from pulse_adapters.config.home import Home
from pulse_adapters.ipc.lock import holder
from pulse_adapters.sqlite.event_reader import SqliteEventReader
from pulse_adapters.sqlite.verify import verify
from pulse_core.model.errors import Damaged, LogUnavailable
from pulse_core.ports.readers import EventQuery
from tests.acceptance.conftest import Served
from upulse_cli.wiring.daemon import LOCK_CHECK

VICTIM = """
[[process]]
name = "victim"
start = ["sleep", "9011"]
restart = { max = 1000, backoff = "0s", healthy_after = "0s", grace = "1s" }
"""


def test_a_deleted_log_is_said_its_rows_are_put_back_and_the_dead_are_restarted_meanwhile(
    served: Served,
) -> None:
    served.configure(VICTIM)
    served.start()
    first = served.pid_when_up("victim")
    ids = [served.append("resumed")["id"] for _ in range(20)]
    served.home.events.unlink()
    served.eventually(
        lambda: any("rows are saved" in one["evidence"] for one in served.status()["conditions"]),
        "it is said",
    )
    with pytest.raises(LogUnavailable, match="doctor --repair"):
        served.append("resumed")
    os.kill(first, signal.SIGKILL)
    second = served.pid_when_up("victim", other_than=first)
    with pytest.raises(Damaged, match="doctor --repair"):
        SqliteEventReader(served.home.path)
    assert served.stop() == 0
    served.start()  # nobody has put another log there
    assert served.pid_when_up("victim") == second  # what was done meanwhile is known, and counts
    assert served.process("victim")["restarts"] == 1
    served.eventually(lambda: not served.status()["conditions"], "it is over")
    with SqliteEventReader(served.home.path) as log:
        assert [event.id for event in log.events(EventQuery(kinds=("resumed",)))] == ids
        assert any("is there again" in event.data for event in log.events(EventQuery(kinds=("error",))))


def test_a_log_that_is_moved_and_linked_is_said_and_is_whole_again_at_the_next_start(served: Served) -> None:
    served.configure(VICTIM)
    served.start()
    ids = [served.append("resumed")["id"] for _ in range(20)]
    served.home.events.rename(served.home.path / "ev2")
    served.home.events.symlink_to("ev2")
    served.eventually(
        lambda: any("was replaced by a link" in one["evidence"] for one in served.status()["conditions"]),
        "it is said",
    )
    assert served.stop() == 0
    served.start()
    with SqliteEventReader(served.home.path) as log:
        assert [event.id for event in log.events(EventQuery(kinds=("resumed",)))] == ids
    assert verify(served.home.events, served.home.objects).fault == ""


def test_a_home_that_is_moved_is_said_to_be_served_no_more_until_it_is_moved_back(served: Served) -> None:
    served.configure(VICTIM)
    served.said = served.home.path.parent / "said"
    served.start()
    first = served.pid_when_up("victim")
    before = served.append("resumed")["id"]
    there, moved = served.home, Home(served.home.path.with_name("moved"))
    there.path.rename(moved.path)
    served.home = moved
    served.eventually(
        lambda: any("was moved to" in one["evidence"] for one in served.status()["conditions"]), "it is said"
    )
    with pytest.raises(LogUnavailable, match=f"upulse daemon restart --home {moved.path}"):
        served.append("resumed")
    os.kill(first, signal.SIGKILL)
    second = served.pid_when_up("victim", other_than=first)
    time.sleep(LOCK_CHECK)
    held = holder(moved.lock)
    assert held
    assert served.daemon
    assert held.pid == served.daemon.pid
    assert not there.path.exists()
    moved.path.rename(there.path)
    served.home = there
    served.eventually(lambda: not served.status()["conditions"], "it is over")
    after = served.append("resumed")["id"]
    assert served.stop() == 0
    with SqliteEventReader(there.path) as log:
        assert [event.id for event in log.events(EventQuery(kinds=("resumed",)))] == [before, after]
        assert any(f'"pid":{second}' in event.data for event in log.events(EventQuery(kinds=("process-up",))))
    assert verify(there.events, there.objects).fault == ""
