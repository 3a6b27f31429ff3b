"""What every courier promises."""

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest

from pulse_adapters.memory.network import MemoryTransport
from pulse_adapters.notify.executor import ChildTransport
from pulse_core.ports.transport import OutgoingMessage, Transport
from tests.postbox import fail, postbox


@dataclass
class Route:
    """A courier, an address that takes letters and one that doesn't, and the titles of what arrived."""

    transport: Transport
    good: str
    bad: str
    arrived: Callable[[], list[str]]


@pytest.fixture(params=["memory", "child"])
def route(request: pytest.FixtureRequest) -> Iterator[Route]:
    if request.param == "memory":
        transport = MemoryTransport({"json://bad": "lost"})
        yield Route(transport, "json://good", "json://bad", lambda: [one.title for one in transport.arrived])
        return
    with postbox() as box:
        box.manners["bad"] = fail
        yield Route(
            ChildTransport(), box.url("good"), box.url("bad"),
            lambda: [post["title"] for path, post in box.posts if path == "good"],
        )  # fmt: skip


async def test_answers_come_in_the_order_of_the_letters(route: Route) -> None:
    letters = [
        OutgoingMessage(url, f"title {number}", "body") for number, url in enumerate([route.bad, route.good])
    ]
    lost, arrived = await route.transport.deliver(letters)
    assert lost
    assert arrived == ""
    assert route.arrived() == ["title 1"]


async def test_no_letters_need_no_courier(route: Route) -> None:
    assert list(await route.transport.deliver(())) == []


async def test_it_can_be_called_back(route: Route) -> None:
    sending = asyncio.create_task(route.transport.deliver([OutgoingMessage(route.good, "title", "body")]))
    await asyncio.sleep(0)
    sending.cancel()
    with pytest.raises(asyncio.CancelledError):
        await sending
    assert route.arrived() == []
