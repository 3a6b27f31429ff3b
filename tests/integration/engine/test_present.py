"""Beside a daemon: what is shown is what its rules saw."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from pulse_adapters.config.home import Home
from pulse_core.app.engine.live_snapshots import DaemonTicks
from pulse_core.app.engine.recorded_ticks import RecordedTicks
from pulse_core.projections.state import Snapshot
from tests.integration.cli.cli_home import CliHome, sleeper
from tests.integration.engine.engine_home import CALM, new_home
from upulse_cli.wiring.home import home_context

LIVELY = '[daemon]\ntick_ms = 100\n[watch]\nsystem_interval = "150ms"\n' + sleeper("demo", 8_641)


@pytest.fixture
def served(tmp_path: Path) -> Iterator[CliHome]:
    home = new_home(tmp_path / "home", CALM, LIVELY)
    home.start_daemon()
    try:
        yield home
    finally:
        home.end_everything()


async def seen(home: Home, count: int) -> dict[int, Snapshot]:
    """The next ticks, by number."""
    beside, found = DaemonTicks(home_context(home)), {}
    try:
        async with asyncio.timeout(60):
            async for then in beside.ticks():
                found[then.snapshot.tick] = then.snapshot
                if len(found) == count:
                    return found
    finally:
        beside.close()
    raise AssertionError("the daemon ended")


async def test_a_live_tick_is_the_one_that_a_replay_sees(served: CliHome) -> None:
    home = Home(served.path)
    found = await seen(home, 15)
    assert sorted(found) == list(range(min(found), min(found) + 15))
    with RecordedTicks(home_context(home), 0) as past:
        replayed = {then.snapshot.tick: then.snapshot for then in past.ticks() if then.snapshot.tick in found}
    assert replayed == found
    assert any(len(snapshot.window("system-resource").samples) > 1 for snapshot in found.values())
