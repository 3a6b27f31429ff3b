"""Beside a daemon: what is shown is what its rules saw."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from pulse_adapters.config.home import Home
from pulse_adapters.rule_host.hosts import ChildHosts, StandbyHosts
from pulse_core.app.engine.candidate_checks import no_history
from pulse_core.app.engine.live_snapshots import DaemonTicks
from pulse_core.app.engine.recorded_ticks import RecordedTicks
from pulse_core.ports import Revision
from pulse_core.projections import Snapshot
from tests.integration.cli.cli_home import CliHome, sleeper
from tests.integration.engine.engine_home import CALM, new_home
from tests.integration.rule_host.rule_host_engines import at, written
from upulse_cli.wiring.home import home_context

LIVELY = '[daemon]\ntick_ms = 100\n[watch]\nsystem_interval = "150ms"\n' + sleeper("demo", 8_641)


@pytest.fixture
def served(tmp_path: Path) -> Iterator[CliHome]:
    home = new_home(tmp_path / "home", CALM, LIVELY)
    home.upulse("daemon", "start")
    try:
        yield home
    finally:
        home.end_everything()


async def seen(home: Home, count: int) -> dict[int, Snapshot]:
    """The next ticks, by number."""
    beside, found = DaemonTicks(home_context(home)), {}
    try:
        async with asyncio.timeout(30):
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


async def test_a_child_that_stands_by_is_the_next_host(tmp_path: Path) -> None:
    revision, hosts = written(tmp_path / "engine", CALM), StandbyHosts(ChildHosts())
    await hosts.warm()
    spare = hosts.spare
    host = await hosts.start(revision, at(1), no_history, {})
    try:
        assert host.pid == spare
        assert hosts.spare is None
        assert [layer.rule for layer in (await host.fold(at(1), at(2))).layers] == ["calm"]
    finally:
        await host.close()


async def test_a_child_that_died_while_it_stood_by_is_replaced(tmp_path: Path) -> None:
    revision, hosts = written(tmp_path / "engine", CALM), StandbyHosts(ChildHosts())
    await hosts.warm()
    assert hosts._spare is not None
    hosts._spare.kill()
    host = await hosts.start(revision, at(1), no_history, {})
    assert host.alive
    await host.close()


async def test_a_child_that_nobody_took_is_ended(tmp_path: Path) -> None:
    hosts = StandbyHosts(ChildHosts(scratch=str(tmp_path)))
    await hosts.warm()
    spare = hosts.spare
    assert spare is not None
    await hosts.close()
    assert not Path(f"/proc/{spare}").exists()
    assert not list(tmp_path.iterdir())


async def test_rules_that_do_not_load_in_a_warm_host_are_refused_like_in_any(tmp_path: Path) -> None:
    hosts = StandbyHosts(ChildHosts(scratch=str(tmp_path / "scratch")))
    (tmp_path / "scratch").mkdir()
    with pytest.raises(Exception, match=r"there is no engine\.py"):
        await hosts.start(Revision("staging", str(tmp_path)), at(1), no_history, {})
    assert not list((tmp_path / "scratch").iterdir())
