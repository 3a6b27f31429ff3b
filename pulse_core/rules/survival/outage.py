"""Finds what a network outage explains: such trouble causes no restart and no second notice."""

from pulse_core.model.condition_names import DNS_ONLY, DOWN, HTTP_ONLY, NETWORK, WELL
from pulse_core.model.durations import rough_duration
from pulse_core.model.urls import host_of, is_address, is_here
from pulse_core.projections import Condition, Snapshot


def outage_reason(url: str, wrong: Condition, curr: Snapshot) -> str:
    """How the network explains what is wrong with this URL; empty if it does not.

    No outage explains a URL on this machine's loopback. If the network looks bad but nothing is proven yet, or
    was not probed since the URL failed, it may be the reason: wait for its next probe.
    """
    network = curr.settings.network
    if is_here(url) or not (network.dns or network.http):
        return ""
    if condition := curr.conditions[NETWORK]:
        outage = explains_url(condition.state, url)
        return (
            f"the network is {condition.state} for {rough_duration(curr.now.since(condition.since))}"
            if outage
            else ""
        )
    newest = curr.window(NETWORK).last
    age = curr.now.since(newest.moment) if newest else 0
    if newest is None or age > 2 * (network.interval + network.timeout):
        return ""  # the network is not watched
    if explains_url(newest.data.get("state", WELL), url):
        return "the network may be the reason: it looks bad, which another look will prove or not"
    return "the network may be the reason: it is looked at first" if age > curr.now.since(wrong.since) else ""


def explains_url(state: str, url: str) -> bool:
    """Whether a network in this state explains that this URL does not answer."""
    return state in {DOWN, HTTP_ONLY} or (state == DNS_ONLY and not is_address(host_of(url)))
