"""Forged messages of hosts, by the thousand: each is a fault of its host, and nothing else comes of it."""

from tests.campaign.forgery import forge


async def test_nothing_that_a_host_says_leaves_the_boundary_or_holds_up_the_daemon() -> None:
    told = await forge(2_000, seed=1)
    assert told["folded"] > 100
    assert told["effects"] > 10
    assert told["called"] > 10
    assert (
        told["worst_late_ms"] < 1_000
    )  # a busy machine may take as long; a campaign bounds it more strictly
