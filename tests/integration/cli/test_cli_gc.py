"""`upulse gc`: what it says is what went, with a daemon and without one."""

import asyncio
import os
import time
from pathlib import Path

from pulse_adapters.sqlite.vitals import SqliteVitals
from pulse_core.model.event import Head
from pulse_core.model.moment import Moment
from pulse_core.model.tick import TickRecord
from tests.integration.cli.cli_home import CliHome

DAY = 86_400


def orphan(home: CliHome, content: bytes = b"orphan") -> Path:
    path = home.path / "objects" / "ab" / ("c" * 62)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    os.utime(path, (time.time() - DAY,) * 2)
    return path


async def fill(home: CliHome, snapshot: str) -> None:
    """Two samples of before yesterday, one of now, and a tick of last month, whose snapshot was kept until now."""
    now = round(time.time() * 1e6)
    old = now - 2 * DAY * 1_000_000
    async with SqliteVitals.open(home.path / "vitals.db") as vitals:
        for at in (old, old + 1, now):
            vitals.sample("system-resource", Moment(at, "b", 1), {"cpu": 0.5})
        then = Moment(old - 30 * DAY * 1_000_000, "b", 1)
        vitals.record(TickRecord(1, then, "timer", Head(), (), "d", "0", (), (), 1, 1, snapshot))


def test_a_dry_run_says_what_would_go_and_lets_it_be(quiet: CliHome) -> None:
    path = orphan(quiet)
    asyncio.run(fill(quiet, "ab" + "c" * 62))
    words = "2 samples, 1 tick, 1 object (6 B)"
    assert quiet.upulse("gc", "--dry-run").out == f"Would be removed: {words}\n"
    assert path.exists()


def test_without_a_daemon_it_is_done_under_the_lock(quiet: CliHome) -> None:
    path = orphan(quiet)
    asyncio.run(fill(quiet, "ab" + "c" * 62))
    assert quiet.upulse("gc").out == "Removed: 2 samples, 1 tick, 1 object (6 B)\n"
    assert not path.exists()
    assert quiet.upulse("gc").out == "Removed: nothing\n"
    told = quiet.upulse("gc", "--json").json
    assert told["samples"] == told["objects"] == 0
    assert not quiet.upulse("events", "--json").lines


def test_a_running_daemon_is_asked_and_answers(live: CliHome) -> None:
    path = orphan(live)
    told = live.upulse("gc", "--json").json
    assert (told["objects"], told["bytes"], told["fault"]) == (1, 6, "")
    assert not path.exists()
    asked, done = live.upulse("events", "--json", "--kind", "gc-requested", "--kind", "gc-done").lines[-2:]
    assert done["cause"] == asked["id"]
    assert asked["actor"] != "pulse"
    assert live.upulse("gc", "--dry-run").out == "Would be removed: nothing\n"


def test_what_cannot_be_done_is_said(quiet: CliHome) -> None:
    path = orphan(quiet)
    (quiet.path / "events.db").unlink()
    said = quiet.upulse("gc", code=1)
    assert "not everything could be done" in said.err
    assert "is not there" in said.err
    assert path.exists()


def test_no_home_no_gc(quiet: CliHome, tmp_path: Path) -> None:
    elsewhere = CliHome(tmp_path / "nothing")
    assert "upulse init" in elsewhere.upulse("gc", code=1).err
