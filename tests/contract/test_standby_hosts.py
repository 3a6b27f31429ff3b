"""What hosts promise that begin at once, since a child has loaded all but the author's code for them."""

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from pulse_adapters.rule_host.hosts import ChildHosts
from pulse_core.app.engine.candidate_checks import no_history
from pulse_core.ports.engine import CannotLoad, Revision
from tests.integration.engine.engine_home import CALM
from tests.integration.rule_host.rule_host_engines import at, written
from tests.processes import children

HOST = "pulse_adapters.rule_host"


@pytest.fixture
async def hosts(tmp_path: Path) -> AsyncIterator[ChildHosts]:
    (tmp_path / "scratch").mkdir()
    hosts = ChildHosts(scratch=str(tmp_path / "scratch"))
    before = children(os.getpid(), HOST)
    yield hosts
    await hosts.close()
    assert children(os.getpid(), HOST) == before
    assert not list((tmp_path / "scratch").iterdir())


def spare_of(hosts: ChildHosts) -> int:
    assert hosts._spare is not None
    return hosts._spare.pid


async def is_alone(spare: int) -> bool:
    """Whether this is the one child there is, once it is seen: while it is executed it has no name of its own."""
    async with asyncio.timeout(60):
        while spare not in (found := children(os.getpid(), HOST)):
            await asyncio.sleep(0.01)
    return found == [spare]


async def test_a_child_that_stands_by_is_the_next_host(hosts: ChildHosts, tmp_path: Path) -> None:
    hosts.warm()
    spare = spare_of(hosts)
    assert await is_alone(spare)
    host = await hosts.start(written(tmp_path / "engine", CALM), at(1), no_history, {})
    assert (host.pid, hosts._spare) == (spare, None)
    assert [layer.rule for layer in (await host.fold(at(1), at(2))).layers] == ["calm"]
    await host.close()


async def test_without_one_a_host_begins_all_the_same(hosts: ChildHosts, tmp_path: Path) -> None:
    host = await hosts.start(written(tmp_path / "engine", CALM), at(1), no_history, {})
    assert host.loaded.rules == ("calm",)
    await host.close()


async def test_a_child_that_died_while_it_stood_by_is_replaced(hosts: ChildHosts, tmp_path: Path) -> None:
    hosts.warm()
    assert hosts._spare is not None
    hosts._spare.kill()
    hosts.warm()
    host = await hosts.start(written(tmp_path / "engine", CALM), at(1), no_history, {})
    assert host.alive
    await host.close()


async def test_one_stands_by_however_often_that_is_asked_for(hosts: ChildHosts) -> None:
    hosts.warm()
    hosts.warm()
    assert await is_alone(spare_of(hosts))


async def test_a_child_that_nobody_took_is_ended(hosts: ChildHosts) -> None:
    hosts.warm()
    spare = spare_of(hosts)
    await hosts.close()
    assert not Path(f"/proc/{spare}").exists()
    hosts.warm()
    await hosts.close()
    assert children(os.getpid(), HOST) == []


async def test_what_does_not_load_is_refused_like_in_any_host(hosts: ChildHosts, tmp_path: Path) -> None:
    hosts.warm()
    with pytest.raises(CannotLoad, match=r"there is no engine\.py"):
        await hosts.start(Revision("staging", str(tmp_path)), at(1), no_history, {})
    assert children(os.getpid(), HOST) == []
