"""What every courier promises."""

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest

from pulse_adapters.memory import MemoryCourier
from pulse_adapters.notify.courier import ChildCourier
from pulse_core.ports import Courier, Letter
from tests.postbox import fail, postbox


@dataclass
class Route:
    """A courier, an address that takes letters and one that doesn't, and the titles of what arrived."""

    courier: Courier
    good: str
    bad: str
    arrived: Callable[[], list[str]]


@pytest.fixture(params=["memory", "child"])
def route(request: pytest.FixtureRequest) -> Iterator[Route]:
    if request.param == "memory":
        courier = MemoryCourier({"json://bad": "lost"})
        yield Route(courier, "json://good", "json://bad", lambda: [one.title for one in courier.arrived])
        return
    with postbox() as box:
        box.manners["bad"] = fail
        yield Route(
            ChildCourier(), box.url("good"), box.url("bad"),
            lambda: [post["title"] for path, post in box.posts if path == "good"],
        )  # fmt: skip


async def test_answers_come_in_the_order_of_the_letters(route: Route) -> None:
    letters = [Letter(url, f"title {number}", "body") for number, url in enumerate([route.bad, route.good])]
    lost, arrived = await route.courier.deliver(letters)
    assert lost
    assert arrived == ""
    assert route.arrived() == ["title 1"]


async def test_no_letters_need_no_courier(route: Route) -> None:
    assert list(await route.courier.deliver(())) == []


async def test_it_can_be_called_back(route: Route) -> None:
    sending = asyncio.create_task(route.courier.deliver([Letter(route.good, "title", "body")]))
    await asyncio.sleep(0)
    sending.cancel()
    with pytest.raises(asyncio.CancelledError):
        await sending
    assert route.arrived() == []
