"""Forged messages of hosts, by the thousand: each is a fault of its host, and nothing else comes of it."""

from tests.campaign.forgery import forge


async def test_nothing_that_a_host_says_leaves_the_boundary_or_holds_up_the_daemon() -> None:
    told = await forge(2_000, seed=1)
    assert told["folded"] > 100
    assert told["effects"] > 10
    assert told["called"] > 10
    # Of its own time, since the machine may be busy with others; a campaign bounds how late timers are.
    assert told["worst_busy_ms"] < 250
