"""What every prober promises: the real one on loopback servers, and the one in memory."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any, Literal

import pytest

from pulse_adapters.memory.network import MemoryProber
from pulse_adapters.network.prober import ChildProber
from pulse_core.ports.prober import Prober, ProbeRequest, ProbeResult, Trouble
from tests.integration.network.network_servers import OK, addresses, name_server, page_server, says, stalls

BUSY = b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n"
About = Literal["dns", "http"]


@dataclass
class Network:
    """A prober, and its targets: `good`, `busy` (which answers with 503) and `silent` ones."""

    prober: Prober
    targets: Mapping[tuple[About, str], tuple[str, tuple[str, ...]]]

    async def ask(self, about: About, target: str, seconds: float = 10.0) -> ProbeResult:
        return await self.sent(about, target, seconds)

    def sent(self, about: About, target: str, seconds: float = 10.0) -> asyncio.Future[ProbeResult]:
        """A probe that is under way."""
        where, servers = self.targets[about, target]
        return self.prober.ask(ProbeRequest(about, where, round(seconds * 1_000_000), servers))


@pytest.fixture(params=["memory", "child"])
async def network(request: pytest.FixtureRequest) -> AsyncIterator[Network]:
    if request.param == "memory":
        prober = MemoryProber({"busy": ProbeResult(took_ms=1.0, status=503)}, {"silent"})
        abouts: tuple[About, ...] = ("dns", "http")
        yield Network(
            prober, {(about, what): (what, ()) for about in abouts for what in ("good", "busy", "silent")}
        )
        return
    async with AsyncExitStack() as stack:
        targets: dict[tuple[About, str], tuple[str, tuple[str, ...]]] = {}
        for what, reply in {"good": addresses("192.0.2.1"), "silent": lambda packet: None}.items():
            targets["dns", what] = "some.test", (await stack.enter_async_context(name_server(reply)),)
        for what, serve in {"good": says(OK), "busy": says(BUSY), "silent": stalls}.items():
            port = await stack.enter_async_context(page_server(serve))
            targets["http", what] = f"http://127.0.0.1:{port}/", ()
        child = ChildProber()
        stack.callback(child.close)
        yield Network(child, targets)


async def test_a_name_is_resolved(network: Network) -> None:
    result = await network.ask("dns", "good")
    assert (result.trouble, result.addresses, result.status) == (None, ("192.0.2.1",), None)
    assert result.took_ms > 0


@pytest.mark.parametrize(("target", "status"), [("good", 200), ("busy", 503)])
async def test_a_page_that_answers_is_no_trouble_whatever_it_says(
    network: Network, target: str, status: int
) -> None:
    result = await network.ask("http", target)
    assert (result.trouble, result.status, result.addresses) == (None, status, ())


@pytest.mark.parametrize(("about", "trouble"), [("dns", Trouble.TIMEOUT), ("http", Trouble.STALLED)])
async def test_a_silent_target_costs_its_timeout_and_says_how_it_was_silent(
    network: Network, about: About, trouble: Trouble
) -> None:
    async with asyncio.timeout(60):
        result = await network.ask(about, "silent", 1.0)
    assert (result.trouble, result.status, result.addresses) == (trouble, None, ())
    assert result.detail
    assert result.took_ms >= 990


async def test_a_silent_target_holds_up_no_other_one(network: Network) -> None:
    silent = network.sent("http", "silent", 30)
    results = await asyncio.gather(*(network.ask("http", "good") for _ in range(5)))
    assert [one.status for one in results] == [200] * 5
    assert not silent.done()
    silent.cancel()


async def test_a_probe_that_is_cancelled_disturbs_nothing(network: Network) -> None:
    errors: list[Mapping[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: errors.append(context))
    network.sent("http", "silent", 0.1).cancel()
    assert (await network.ask("http", "silent", 0.3)).trouble is Trouble.STALLED
    assert (await network.ask("http", "good")).status == 200
    assert not errors
