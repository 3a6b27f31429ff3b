"""What the network explains of a URL that does not answer, and for how long its last look counts."""

from typing import Any

import pytest

from pulse_core.projections.conditions import Condition
from pulse_core.rules.survival.network_watchdog import explains_url, outage_reason
from pulse_core.testing import Story, given

FAR, BY_ADDRESS, HERE = "http://one.example/", "http://192.0.2.1/", "http://127.0.0.1:4000/"
NETWORK = {"dns": ["one.example"], "http": ["http://two.example/"], "interval": "10s", "timeout": "5s"}


def looked(state: str | None, **network: Any) -> Story:
    """A network that was looked at now, with this outcome."""
    story = given(settings={"network": {**NETWORK, **network}})
    return story.sample("network", **({} if state is None else {"state": state}))


def why(story: Story, url: str = FAR, *, for_us: int = 0) -> str:
    """How the network explains that this URL has been wrong for so long."""
    since = story.now.plus(-for_us)
    return outage_reason(url, Condition(since, "down", since, "no answer"), story.snapshot)


@pytest.mark.parametrize("missing", ["dns", "http"])
def test_one_kind_of_target_is_enough_to_know_the_network(missing: str) -> None:
    assert "it looks bad" in why(looked("down", **{missing: []}))


def test_without_any_target_nobody_knows_the_network() -> None:
    assert why(looked("down", dns=[], http=[])) == ""


def test_a_look_counts_for_twice_as_long_as_the_next_one_may_take() -> None:
    story = looked("down").after("30s")
    assert "it looks bad" in why(story)
    story.now = story.now.plus(1)
    assert why(story) == ""


def test_a_network_that_nobody_has_looked_at_explains_nothing() -> None:
    assert why(given(settings={"network": NETWORK})) == ""


def test_only_a_look_from_after_the_failure_clears_the_network() -> None:
    story = looked("").after("5s")
    assert why(story, for_us=5_000_000) == ""
    assert "it is looked at first" in why(story, for_us=4_999_999)
    assert why(looked(None)) == ""


def test_a_proven_outage_is_named_with_how_long_it_lasts() -> None:
    story = looked("")
    story.raised("network", "down")
    story.after("10m")
    assert why(story) == "the network is down, first seen 10 min ago"
    assert why(story, HERE) == ""
    story.raised("network", "slow")
    assert why(story) == ""


@pytest.mark.parametrize(
    ("state", "url", "holds"),
    [
        ("down", BY_ADDRESS, True),
        ("http-only", BY_ADDRESS, True),
        ("dns-only", BY_ADDRESS, False),
        ("dns-only", FAR, True),
        ("slow", FAR, False),
        ("degraded", FAR, False),
        ("", FAR, False),
    ],
)
def test_each_state_covers_what_it_can_be_the_reason_for(state: str, url: str, holds: bool) -> None:
    assert explains_url(state, url) is holds
